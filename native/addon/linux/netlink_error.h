#pragma once

#include "addon/native_error.h"
#include "netlink/result.h"

namespace pointsman::addon {

/// The error of a netlink exchange, without an object.
inline NativeError from_netlink(const netlink::Error& error, const char* operation) {
  NativeError native;
  native.code = error.kind == netlink::ErrorKind::kDecode ? "ERR_NETLINK_DECODE" : "ERR_NETLINK";
  native.error_number = error.code;
  native.operation = operation;
  native.reason = error.message;
  native.kernel_message = error.kernel_message;
  return native;
}

/// Throws it, for calls that answer no promise.
inline Napi::Value throw_netlink(Napi::Env env, const netlink::Error& error, const char* operation) {
  const Napi::Value object = to_error_object(env, from_netlink(error, operation));
  if (!object.IsEmpty()) napi_throw(env, object);
  return env.Undefined();
}

}  // namespace pointsman::addon
