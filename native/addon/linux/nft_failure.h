#pragma once

#include <string>

#include "addon/linux/netlink_error.h"
#include "addon/native_error.h"
#include "nftables/transaction.h"

namespace pointsman::addon {

/// The error of a transaction that did not happen.
inline NativeError from_failure(const nftables::Failure& failure, const char* operation) {
  NativeError error = from_netlink(failure.cause, operation);
  if (failure.refused_by_compiler) {
    error.code = "ERR_NFT_JSON";
    if (failure.operation) error.reason = "operations[" + std::to_string(*failure.operation) + "]." + error.reason;
  }
  error.object = failure.object;
  error.index = failure.operation;
  error.element = failure.element;
  if (failure.owner) {
    error.advice = "another process owns the table (flags owner, netlink port " + std::to_string(*failure.owner) + ")";
  }
  return error;
}

}  // namespace pointsman::addon
