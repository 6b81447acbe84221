#include "addon/linux/subsystems.h"

#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "addon/async_call.h"
#include "addon/functions.h"

namespace pointsman::addon {

namespace {

class Trim final : public AsyncCall {
 private:
  void execute() override {
#ifdef __GLIBC__
    trimmed_ = malloc_trim(0) == 1;
#endif
  }

  Napi::Value finish(Napi::Env env) override { return Napi::Boolean::New(env, trimmed_); }

  bool trimmed_ = false;
};

Napi::Value memory_trim(const Napi::CallbackInfo& info) { return AsyncCall::start(info.Env(), "memory trim", std::make_unique<Trim>()); }

}  // namespace

Napi::Object memory_functions(Napi::Env env) {
  Functions functions(env);
  functions.add<memory_trim>("memoryTrim");
  return functions.object();
}

}  // namespace pointsman::addon
