#include <napi.h>

#include "addon/platform.h"

namespace pointsman::addon {

namespace {

Napi::Object initialize(Napi::Env env, Napi::Object exports) {
  export_subsystems(env, exports);
  return exports;
}

}  // namespace

NODE_API_MODULE(pointsman, initialize)

}  // namespace pointsman::addon
