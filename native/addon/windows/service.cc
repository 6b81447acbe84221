#include "service/service.h"

#include "addon/argument.h"
#include "addon/async_call.h"
#include "addon/caller.h"
#include "addon/functions.h"
#include "addon/windows/subsystems.h"

namespace pointsman::addon {

namespace {

constexpr const char* kConnect = "service connect";
constexpr const char* kReport = "service report";

NativeError service_error(HRESULT result, const char* operation) {
  NativeError error;
  error.code = "ERR_SERVICE";
  error.error_number = static_cast<int>(result);
  error.operation = operation;
  return error;
}

Napi::Value control_value(Napi::Env env, const service::Control& control) {
  return Napi::String::New(env, control.shutdown ? "shutdown" : "stop");
}

using ControlCaller = Caller<service::Control, control_value>;

void end(void*) { service::disconnect(); }

class Connect final : public AsyncCall {
 public:
  explicit Connect(std::shared_ptr<ControlCaller> caller) : caller_(std::move(caller)) {}

 private:
  void execute() override {
    const HRESULT result = service::connect([caller = caller_](const service::Control& control) { caller->tell(control); });
    if (FAILED(result)) fail(service_error(result, kConnect));
  }

  Napi::Value finish(Napi::Env env) override {
    napi_add_env_cleanup_hook(env, end, nullptr);
    return env.Undefined();
  }

  std::shared_ptr<ControlCaller> caller_;
};

Napi::Value service_connect(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Misuse misuse(env);
  if (!info[0].IsFunction()) Argument(info[0], "onControl", misuse).expect("a function");
  if (misuse.failed()) return misuse.raise();
  auto caller = ControlCaller::make(env, kConnect, info[0].As<Napi::Function>());
  if (!caller) return env.Undefined();
  return AsyncCall::start(env, kConnect, std::make_unique<Connect>(std::move(caller)));
}

Napi::Value service_report(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Misuse misuse(env);
  const auto state = static_cast<service::State>(Argument(info[0], "state", misuse).word({"running", "stopping", "stopped"}));
  const std::uint32_t number = Argument(info[1], "number", misuse).integer(0, INT32_MAX);
  if (misuse.failed()) return misuse.raise();
  const bool stopped = state == service::State::kStopped;
  const HRESULT result = service::report(state, stopped ? 0 : number, stopped ? number : 0);
  if (FAILED(result)) {
    const Napi::Value error = to_error_object(env, service_error(result, kReport));
    if (!error.IsEmpty()) napi_throw(env, error);
  }
  return env.Undefined();
}

}  // namespace

Napi::Object service_functions(Napi::Env env) {
  Functions functions(env);
  functions.add<service_connect>("serviceConnect");
  functions.add<service_report>("serviceReport");
  return functions.object();
}

}  // namespace pointsman::addon
