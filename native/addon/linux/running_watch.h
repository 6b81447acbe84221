#pragma once

#include <napi.h>

#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "addon/caller.h"

namespace pointsman::addon {

/// A watch with a thread that waits for it and calls JavaScript, until JavaScript stops it or the environment ends.
///
/// `Watch`: `wait` blocks until there is a change, and answers none after `stop`. `Change`: `merge` and `any`. `to_value` makes of it what JavaScript is called
/// with.
template <typename Watch, typename Change, Napi::Value (*to_value)(Napi::Env, const Change&)>
class RunningWatch {
  using ChangeCaller = Caller<Change, to_value>;

 public:
  /// Answers the function that stops it, or what a failing call has to answer. `at_end` is called once, when it is stopped or the environment ends.
  static Napi::Value start(Napi::Env env, const char* name, std::shared_ptr<Watch> watch, const Napi::Function& on_change,
                           std::function<void()> at_end) {
    auto caller = ChangeCaller::make(env, name, on_change);
    if (caller == nullptr) {
      at_end();
      return env.Undefined();
    }
    const auto running = std::make_shared<RunningWatch>(env, std::move(watch), std::move(caller), std::move(at_end));
    // The environment runs its hooks last added first: this one before that of the thread-safe function.
    running->self_ = running;
    napi_add_env_cleanup_hook(env, end, running.get());
    running->thread_ = std::thread([watch = running->watch_, caller = running->caller_] {
      while (const auto change = watch->wait()) caller->tell(*change);
    });
    const std::weak_ptr<RunningWatch> handle = running;
    return Napi::Function::New(
        env,
        [handle](const Napi::CallbackInfo&) {
          if (const auto held = handle.lock()) held->stop();
        },
        "stop");
  }

  RunningWatch(Napi::Env env, std::shared_ptr<Watch> watch, std::shared_ptr<ChangeCaller> caller, std::function<void()> at_end)
      : env_(env), watch_(std::move(watch)), caller_(std::move(caller)), at_end_(std::move(at_end)) {}

 private:
  static void end(void* running) { static_cast<RunningWatch*>(running)->finish(); }

  void stop() {
    napi_remove_env_cleanup_hook(env_, end, this);
    finish();
  }

  void finish() {
    watch_->stop();
    at_end_();
    thread_.join();
    caller_.reset();
    self_.reset();
  }

  napi_env env_;
  std::shared_ptr<Watch> watch_;
  std::shared_ptr<ChangeCaller> caller_;
  std::function<void()> at_end_;
  std::thread thread_;
  /// While it runs it owns itself.
  std::shared_ptr<RunningWatch> self_;
};

}  // namespace pointsman::addon
