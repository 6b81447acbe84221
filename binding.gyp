{
  "targets": [
    {
      "target_name": "pointsman",
      "sources": ["<!@(ls native/addon/*.cc)"],
      "conditions": [
        [
          "OS=='linux'",
          {
            "sources": [
              "<!@(ls native/addon/linux/*.cc native/netlink/*.cc native/nftables/*.cc native/conntrack/*.cc native/iptables/*.cc native/accounting/*.cc native/ipset/*.cc native/ipvs/*.cc native/route/*.cc)"
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
