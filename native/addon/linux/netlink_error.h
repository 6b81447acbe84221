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

}  // namespace pointsman::addon
