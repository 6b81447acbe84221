#pragma once

#include <napi.h>

#include <memory>
#include <utility>

#include "addon/inbox.h"

namespace pointsman::addon {

/// Calls a function of JavaScript from other threads with what these saw; several that come before JavaScript runs are one call. It alone does not
/// keep the process alive. To be made and destroyed on the JS thread, when no other thread uses it any more.
template <typename Change, Napi::Value (*to_value)(Napi::Env, const Change&)>
class Caller {
 public:
  /// None: the environment makes no such functions; an exception is pending.
  static std::shared_ptr<Caller> make(Napi::Env env, const char* name, const Napi::Function& callback) {
    auto caller = std::make_shared<Caller>();
    if (napi_create_threadsafe_function(env, callback, nullptr, Napi::String::New(env, name), 0, 1, nullptr, nullptr, &caller->inbox_,
                                        call, &caller->function_) != napi_ok) {
      Napi::Error::New(env, "cannot create a thread-safe function").ThrowAsJavaScriptException();
      return nullptr;
    }
    napi_unref_threadsafe_function(env, caller->function_);
    return caller;
  }

  Caller() = default;
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  ~Caller() {
    // Aborts: JavaScript is not called for what is still queued.
    if (function_ != nullptr) napi_release_threadsafe_function(function_, napi_tsfn_abort);
  }

  void tell(const Change& change) {
    if (inbox_.put(change)) napi_call_threadsafe_function(function_, nullptr, napi_tsfn_nonblocking);
  }

 private:
  static void call(napi_env raw_env, napi_value callback, void* inbox, void*) {
    if (raw_env == nullptr || callback == nullptr) return;
    const Napi::Env env(raw_env);
    const Napi::HandleScope scope(env);
    const Change change = static_cast<Inbox<Change>*>(inbox)->take();
    Napi::Function(env, callback).Call({to_value(env, change)});
  }

  Inbox<Change> inbox_;
  napi_threadsafe_function function_ = nullptr;
};

}  // namespace pointsman::addon
