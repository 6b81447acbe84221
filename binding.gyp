{
  "targets": [
    {
      "target_name": "pointsman",
      "conditions": [
        [
          "OS=='linux'",
          {
            "sources": [
              "<!@(sh native/units.sh build/units addon+addon/linux nftables netlink+iptables+conntrack+accounting+ipset+ipvs+route+probe+polling+relay)"
            ]
          }
        ],
        [
          "OS=='win'",
          {
            "sources": [
              "native/addon/argument.cc",
              "native/addon/async_call.cc",
              "native/addon/module.cc",
              "native/addon/native_error.cc",
              "native/addon/windows/hcn.cc",
              "native/addon/windows/hcn_watch.cc",
              "native/addon/windows/platform.cc",
              "native/addon/windows/service.cc",
              "native/hcn/hresult.cc",
              "native/hcn/text.cc",
              "native/hcn/windows/library.cc",
              "native/hcn/windows/objects.cc",
              "native/hcn/windows/watch.cc",
              "native/service/service.cc"
            ],
            "defines": ["_WIN32_WINNT=0x0A00", "NTDDI_VERSION=0x0A000006", "WIN32_LEAN_AND_MEAN", "NOMINMAX"],
            "libraries": ["-lole32", "-ladvapi32"],
            "msvs_settings": {
              "VCCLCompilerTool": {
                "AdditionalOptions!": ["-std:c++17", "-std:c++20"],
                "AdditionalOptions": ["/std:c++20", "/permissive-", "/utf-8", "/external:anglebrackets", "/external:W0"],
                "ExceptionHandling": 0,
                "WarnAsError": "true",
                "WarningLevel": 4
              }
            },
            "msvs_disabled_warnings": [4949]
          }
        ]
      ],
      "include_dirs": [
        "native",
        "<!(node -p \"require('node-api-headers').include_dir\")",
        "<!(node -p \"require('node-addon-api').include_dir\")"
      ],
      "defines": ["NAPI_VERSION=8", "NODE_ADDON_API_DISABLE_CPP_EXCEPTIONS", "NODE_ADDON_API_DISABLE_DEPRECATED", "NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS"],
      "cflags_cc": ["-std=c++20", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused-parameter", "-fno-exceptions", "-fvisibility=hidden"]
    }
  ]
}
