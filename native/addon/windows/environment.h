#pragma once

#include <napi.h>

#include <memory>

#include "hcn/windows/library.h"

namespace pointsman::addon {

/// What each environment has of its own. Asynchronous calls hold on to what they use.
struct Environment {
  std::shared_ptr<hcn::Library> library = std::make_shared<hcn::Library>();
};

inline void attach_environment(Napi::Env env) { env.SetInstanceData(std::make_unique<Environment>().release()); }

inline std::shared_ptr<hcn::Library> library_of(Napi::Env env) { return env.GetInstanceData<Environment>()->library; }

}  // namespace pointsman::addon
