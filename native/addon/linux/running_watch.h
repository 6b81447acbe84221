#pragma once

#include <napi.h>

#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "addon/inbox.h"

namespace pointsman::addon {

/// A watch with a thread that waits for it and calls JavaScript, until JavaScript stops it or the environment ends.
///
/// `Watch`: `wait` blocks until there is a change, and answers none after `stop`. `Change`: `merge` and `any`. `to_value` makes of it what JavaScript is called
/// with.
template <typename Watch, typename Change, Napi::Value (*to_value)(Napi::Env, const Change&)>
class RunningWatch {
 public:
  /// Answers the function that stops it, or what a failing call has to answer. `at_end` is called once, when it is stopped or the environment ends.
  static Napi::Value start(Napi::Env env, const char* name, std::shared_ptr<Watch> watch, const Napi::Function& on_change,
                           std::function<void()> at_end) {
    const std::shared_ptr<RunningWatch> running(std::make_shared<RunningWatch>(env, std::move(watch), std::move(at_end)));
    if (napi_create_threadsafe_function(env, on_change, nullptr, Napi::String::New(env, name), 0, 1, nullptr, nullptr,
                                        running->inbox_.get(), call, &running->function_) != napi_ok) {
      running->at_end_();
      Napi::Error::New(env, "cannot create a thread-safe function").ThrowAsJavaScriptException();
      return env.Undefined();
    }
    // A watch alone does not keep the process alive.
    napi_unref_threadsafe_function(env, running->function_);
    // The environment runs its hooks last added first: this one before that of the thread-safe function.
    running->self_ = running;
    napi_add_env_cleanup_hook(env, end, running.get());
    running->thread_ = std::thread([watch = running->watch_, inbox = running->inbox_, function = running->function_] {
      while (const auto change = watch->wait()) {
        if (inbox->put(*change)) napi_call_threadsafe_function(function, nullptr, napi_tsfn_nonblocking);
      }
    });
    const std::weak_ptr<RunningWatch> handle = running;
    return Napi::Function::New(
        env,
        [handle](const Napi::CallbackInfo&) {
          if (const auto held = handle.lock()) held->stop();
        },
        "stop");
  }

  RunningWatch(Napi::Env env, std::shared_ptr<Watch> watch, std::function<void()> at_end)
      : env_(env), watch_(std::move(watch)), at_end_(std::move(at_end)) {}

 private:
  static void end(void* running) { static_cast<RunningWatch*>(running)->finish(); }

  static void call(napi_env raw_env, napi_value callback, void* inbox, void*) {
    if (raw_env == nullptr || callback == nullptr) return;
    const Napi::Env env(raw_env);
    const Napi::HandleScope scope(env);
    const Change change = static_cast<Inbox<Change>*>(inbox)->take();
    Napi::Function(env, callback).Call({to_value(env, change)});
  }

  void stop() {
    napi_remove_env_cleanup_hook(env_, end, this);
    finish();
  }

  void finish() {
    watch_->stop();
    at_end_();
    thread_.join();
    // Aborts: JavaScript is not called for what is still queued.
    napi_release_threadsafe_function(function_, napi_tsfn_abort);
    self_.reset();
  }

  napi_env env_;
  std::shared_ptr<Watch> watch_;
  std::function<void()> at_end_;
  std::shared_ptr<Inbox<Change>> inbox_ = std::make_shared<Inbox<Change>>();
  napi_threadsafe_function function_ = nullptr;
  std::thread thread_;
  /// While it runs it owns itself.
  std::shared_ptr<RunningWatch> self_;
};

}  // namespace pointsman::addon
