#pragma once

#include <napi.h>

namespace pointsman::addon {

// The functions of each subsystem; arguments and answers are those of its interface in src/native.

Napi::Object hcn_functions(Napi::Env env);
Napi::Object service_functions(Napi::Env env);

}  // namespace pointsman::addon
