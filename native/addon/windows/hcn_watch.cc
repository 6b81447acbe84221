#include "addon/windows/hcn_watch.h"

#include <memory>
#include <utility>

#include "addon/argument.h"
#include "addon/caller.h"
#include "addon/windows/hcn_call.h"
#include "hcn/windows/watch.h"

namespace pointsman::addon {

namespace {

constexpr const char* kWatch = "hcn watch";

Napi::Value change_value(Napi::Env env, const hcn::Change& change) {
  Napi::Object value = Napi::Object::New(env);
  value.Set("networks", Napi::Boolean::New(env, change.networks));
  value.Set("disconnected", Napi::Boolean::New(env, change.disconnected));
  return value;
}

using ChangeCaller = Caller<hcn::Change, change_value>;

/// A watch and its caller, until JavaScript ends it or the environment does. It owns itself meanwhile.
class Running {
 public:
  static Napi::Value start(Napi::Env env, std::shared_ptr<ChangeCaller> caller, std::shared_ptr<hcn::Watch> watch) {
    const auto running = std::make_shared<Running>(env, std::move(caller), std::move(watch));
    running->self_ = running;
    napi_add_env_cleanup_hook(env, end, running.get());
    const std::weak_ptr<Running> handle = running;
    return Napi::Function::New(
        env,
        [handle](const Napi::CallbackInfo&) {
          if (const auto held = handle.lock()) held->stop();
        },
        "stop");
  }

  Running(napi_env env, std::shared_ptr<ChangeCaller> caller, std::shared_ptr<hcn::Watch> watch)
      : env_(env), caller_(std::move(caller)), watch_(std::move(watch)) {}

 private:
  static void end(void* running) { static_cast<Running*>(running)->self_.reset(); }

  void stop() {
    napi_remove_env_cleanup_hook(env_, end, this);
    self_.reset();
  }

  napi_env env_;
  std::shared_ptr<ChangeCaller> caller_;
  /// After the caller: it ends first, and then nothing calls any more.
  std::shared_ptr<hcn::Watch> watch_;
  std::shared_ptr<Running> self_;
};

}  // namespace

Napi::Value hcn_watch(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Misuse misuse(env);
  if (!info[0].IsFunction()) Argument(info[0], "onChange", misuse).expect("a function");
  if (misuse.failed()) return misuse.raise();
  auto caller = ChangeCaller::make(env, kWatch, info[0].As<Napi::Function>());
  if (!caller) return env.Undefined();
  return HcnCall<std::shared_ptr<hcn::Watch>>::start(
      env, kWatch,
      [caller](hcn::Library& library) {
        return hcn::Watch::open(library, [caller](const hcn::Change& change) { caller->tell(change); });
      },
      [caller](Napi::Env running, const std::shared_ptr<hcn::Watch>& watch) { return Running::start(running, caller, watch); });
}

}  // namespace pointsman::addon
