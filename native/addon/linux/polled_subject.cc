#include "addon/linux/polled_subject.h"

#include <cstdint>
#include <utility>

#include "addon/caller.h"
#include "addon/linux/environment.h"

namespace pointsman::addon {

namespace {

struct Changed {
  bool found = false;

  bool any() const { return found; }
  void merge(const Changed& later) { found = found || later.found; }
};

Napi::Value no_argument(Napi::Env env, const Changed&) { return env.Undefined(); }

using ChangeCaller = Caller<Changed, no_argument>;

/// From the call until JavaScript ends it or the environment ends. While it lasts it owns itself.
class PolledSubject {
 public:
  PolledSubject(Napi::Env env, std::shared_ptr<ChangeCaller> caller) : env_(env), poller_(poller_of(env)), caller_(std::move(caller)) {}

  static std::weak_ptr<PolledSubject> start(Napi::Env env, std::shared_ptr<ChangeCaller> caller, std::unique_ptr<polling::Subject> subject,
                                            std::chrono::milliseconds period) {
    const auto polled = std::make_shared<PolledSubject>(env, std::move(caller));
    // The environment runs its hooks last added first: this one before that of the thread-safe function.
    polled->self_ = polled;
    napi_add_env_cleanup_hook(env, end, polled.get());
    polled->id_ = polled->poller_->add(std::move(subject), period, [caller = polled->caller_.get()] { caller->tell({true}); });
    return polled;
  }

  void stop() {
    napi_remove_env_cleanup_hook(env_, end, this);
    finish();
  }

 private:
  static void end(void* polled) { static_cast<PolledSubject*>(polled)->finish(); }

  void finish() {
    poller_->remove(id_);
    caller_.reset();
    self_.reset();
  }

  napi_env env_;
  std::shared_ptr<polling::Poller> poller_;
  std::shared_ptr<ChangeCaller> caller_;
  std::uint64_t id_ = 0;
  std::shared_ptr<PolledSubject> self_;
};

}  // namespace

PollArguments poll_arguments(const Napi::CallbackInfo& info, std::size_t first, Misuse& misuse) {
  const std::chrono::milliseconds period(Argument(info[first], "periodMs", misuse).integer(1, 3'600'000));
  const Napi::Value on_change = info[first + 1];
  if (on_change.IsFunction()) return {period, on_change.As<Napi::Function>()};
  Argument(on_change, "onChange", misuse).expect("a function");
  return {};
}

Napi::Value poll_subject(Napi::Env env, const char* name, std::unique_ptr<polling::Subject> subject, const PollArguments& arguments) {
  auto caller = ChangeCaller::make(env, name, arguments.on_change);
  if (caller == nullptr) return env.Undefined();
  const auto handle = PolledSubject::start(env, std::move(caller), std::move(subject), arguments.period);
  return Napi::Function::New(
      env,
      [handle](const Napi::CallbackInfo&) {
        if (const auto held = handle.lock()) held->stop();
      },
      "stop");
}

}  // namespace pointsman::addon
