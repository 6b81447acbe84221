#pragma once

#include <napi.h>

namespace pointsman::addon {

// The functions of each subsystem; arguments and answers are those of its interface in src/native.

Napi::Object nftables_functions(Napi::Env env);
Napi::Object conntrack_functions(Napi::Env env);
Napi::Object iptables_functions(Napi::Env env);
Napi::Object accounting_functions(Napi::Env env);
Napi::Object timeouts_functions(Napi::Env env);
Napi::Object ipvs_functions(Napi::Env env);
Napi::Object ipset_functions(Napi::Env env);
Napi::Object relay_functions(Napi::Env env);
Napi::Object route_functions(Napi::Env env);
Napi::Object memory_functions(Napi::Env env);
Napi::Object peer_functions(Napi::Env env);
Napi::Object sysctl_functions(Napi::Env env);
Napi::Object probe_functions(Napi::Env env);

}  // namespace pointsman::addon
