#pragma once

#include <napi.h>

#include <memory>
#include <optional>

#include "addon/native_error.h"

namespace pointsman::addon {

/// Work on a thread of libuv's pool, whose outcome completes a promise on the JS thread.
///
///     class List : public AsyncCall {
///       void execute() override { … if (!answer.ok()) return fail(…); … }
///       Napi::Value finish(Napi::Env env) override { return …; }
///     };
///     return AsyncCall::start(info.Env(), "conntrack list", std::make_unique<List>(…));
///
/// Everything `execute` needs was copied out of JavaScript before. An environment that ends while the work runs waits for it, and then
/// `finish` is not called: the object is only destroyed.
class AsyncCall {
 public:
  AsyncCall() = default;
  AsyncCall(const AsyncCall&) = delete;
  AsyncCall& operator=(const AsyncCall&) = delete;
  virtual ~AsyncCall() = default;

  /// Queues the work and answers its promise. `name` appears in async hooks.
  static Napi::Value start(Napi::Env env, const char* name, std::unique_ptr<AsyncCall> call);
  /// Does the work at once, on the JS thread, and answers its promise: for what the kernel answers sooner than a thread of the pool wakes up.
  static Napi::Value now(Napi::Env env, std::unique_ptr<AsyncCall> call);

 protected:
  /// Off the JS thread, mostly: touches no JavaScript value.
  virtual void execute() = 0;
  /// On the JS thread, when `execute` did not fail: the promise's value.
  virtual Napi::Value finish(Napi::Env env) = 0;

  /// Makes the promise reject.
  void fail(NativeError error) { error_ = std::move(error); }

 private:
  static void run(napi_env env, void* call);
  static void complete(napi_env env, napi_status status, void* call);
  void settle(Napi::Env env);

  std::optional<NativeError> error_;
  napi_deferred deferred_ = nullptr;
  napi_async_work work_ = nullptr;
};

}  // namespace pointsman::addon
