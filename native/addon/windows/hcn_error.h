#pragma once

#include <optional>
#include <utility>

#include "addon/native_error.h"
#include "hcn/windows/library.h"

namespace pointsman::addon {

/// The error of a call of HNS, without an object.
inline NativeError from_hcn(const hcn::Refusal& refusal, const char* operation) {
  NativeError native;
  native.code = "ERR_HCN";
  native.error_number = static_cast<int>(refusal.hresult);
  native.operation = operation;
  native.reason = refusal.call;
  if (!refusal.reason.empty()) native.reason += ": " + refusal.reason;
  native.kernel_message = refusal.record;
  return native;
}

}  // namespace pointsman::addon
