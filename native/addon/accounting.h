#pragma once

#include <napi.h>

namespace pointsman::addon {

/// accountCreate(name: string): Promise<boolean>
Napi::Value account_create(const Napi::CallbackInfo& info);
/// accountPackets(name: string): Promise<number | null>
Napi::Value account_packets(const Napi::CallbackInfo& info);

}  // namespace pointsman::addon
