#pragma once

#include <napi.h>

namespace pointsman::addon {

/// ipvsList(): Promise<readonly IpvsListedService[]>
Napi::Value ipvs_list(const Napi::CallbackInfo& info);
/// ipvsDelete(service: IpvsService): Promise<boolean>
Napi::Value ipvs_delete(const Napi::CallbackInfo& info);
/// ipsetNames(): Promise<readonly string[]>
Napi::Value ipset_names(const Napi::CallbackInfo& info);
/// ipsetDestroy(name: string): Promise<boolean>
Napi::Value ipset_destroy(const Napi::CallbackInfo& info);
/// linkAddresses(name: string): Promise<readonly Uint8Array[] | null>
Napi::Value link_addresses(const Napi::CallbackInfo& info);
/// linkDelete(name: string): Promise<boolean>
Napi::Value link_delete(const Napi::CallbackInfo& info);

}  // namespace pointsman::addon
