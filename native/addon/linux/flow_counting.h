#pragma once

#include <napi.h>

namespace pointsman::addon {

/// conntrackCount(most: number, buffer: number): FlowCounter
Napi::Value conntrack_count(const Napi::CallbackInfo& info);

}  // namespace pointsman::addon
