#pragma once

#include <napi.h>

namespace pointsman::addon {

/// hcnWatch(onChange: (change: HcnChange) => void): Promise<() => void>
Napi::Value hcn_watch(const Napi::CallbackInfo& info);

}  // namespace pointsman::addon
