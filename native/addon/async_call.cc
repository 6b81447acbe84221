#include "addon/async_call.h"

namespace pointsman::addon {

namespace {

// A call that does nothing but fails in an environment that is shutting down, where building values is no longer safe.
bool can_run_script(Napi::Env env) {
  napi_value unused = nullptr;
  return napi_coerce_to_bool(env, env.Null(), &unused) == napi_ok;
}

}  // namespace

Napi::Value AsyncCall::start(Napi::Env env, const char* name, std::unique_ptr<AsyncCall> call) {
  napi_value promise = nullptr;
  if (napi_create_promise(env, &call->deferred_, &promise) != napi_ok) return env.Undefined();
  const Napi::Value resource = Napi::String::New(env, name);
  AsyncCall* const queued = call.get();
  if (napi_create_async_work(env, nullptr, resource, run, complete, queued, &queued->work_) != napi_ok) {
    Napi::Error::New(env, "cannot create asynchronous work").ThrowAsJavaScriptException();
    return env.Undefined();
  }
  if (napi_queue_async_work(env, queued->work_) != napi_ok) {
    napi_delete_async_work(env, queued->work_);
    Napi::Error::New(env, "cannot queue asynchronous work").ThrowAsJavaScriptException();
    return env.Undefined();
  }
  // The pool owns it now; complete() takes it back.
  static_cast<void>(call.release());
  return {env, promise};
}

Napi::Value AsyncCall::now(Napi::Env env, std::unique_ptr<AsyncCall> call) {
  napi_value promise = nullptr;
  if (napi_create_promise(env, &call->deferred_, &promise) != napi_ok) return env.Undefined();
  call->execute();
  call->settle(env);
  return {env, promise};
}

void AsyncCall::run(napi_env, void* call) { static_cast<AsyncCall*>(call)->execute(); }

void AsyncCall::complete(napi_env raw_env, napi_status status, void* call) {
  const std::unique_ptr<AsyncCall> owned(static_cast<AsyncCall*>(call));
  const Napi::Env env(raw_env);
  const Napi::HandleScope scope(env);
  if (status == napi_ok && can_run_script(env)) owned->settle(env);
  napi_delete_async_work(env, owned->work_);
}

void AsyncCall::settle(Napi::Env env) {
  const Napi::Value value = error_ ? to_error_object(env, *error_) : finish(env);
  napi_value outcome = value;
  bool rejected = error_.has_value();
  if (env.IsExceptionPending()) {
    // For example, out of memory while building the value.
    outcome = env.GetAndClearPendingException().Value();
    rejected = true;
  }
  if (outcome == nullptr) return;
  if (rejected) {
    napi_reject_deferred(env, deferred_, outcome);
  } else {
    napi_resolve_deferred(env, deferred_, outcome);
  }
}

}  // namespace pointsman::addon
