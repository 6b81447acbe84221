{
  "targets": [
    {
      "target_name": "pointsman",
      "sources": ["<!@(sh native/units.sh build/units addon)"],
      "conditions": [
        [
          "OS=='linux'",
          {
            "sources": [
              "<!@(ls native/addon/linux/*.cc)",
              "<!@(sh native/units.sh build/units nftables iptables netlink conntrack accounting ipset ipvs route)"
            ]
          }
        ]
      ],
      "include_dirs": ["native", "<!(node -p \"require('node-addon-api').include_dir\")"],
      "defines": ["NAPI_VERSION=8", "NODE_ADDON_API_DISABLE_CPP_EXCEPTIONS", "NODE_ADDON_API_DISABLE_DEPRECATED", "NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS"],
      "cflags!": ["-fno-exceptions"],
      "cflags_cc!": ["-fno-exceptions", "-std=gnu++17", "-std=gnu++20"],
      "cflags_cc": ["-std=c++20", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused-parameter", "-fno-exceptions", "-fvisibility=hidden"]
    }
  ]
}
