#pragma once

#include <napi.h>

#include <vector>

#include "addon/linux/netlink_error.h"
#include "netlink/exchange.h"

namespace pointsman::addon {

/// Errors in an array, which is what the `apply` functions answer.
inline Napi::Value refusals_value(Napi::Env env, const std::vector<netlink::Refusal>& refusals, const char* operation) {
  const Napi::Array array = Napi::Array::New(env, refusals.size());
  for (std::uint32_t index = 0; index < refusals.size(); ++index) {
    const Napi::HandleScope scope(env);
    NativeError error = from_netlink(refusals[index].error, operation);
    error.object = refusals[index].object;
    error.index = refusals[index].index;
    error.element = refusals[index].element;
    array.Set(index, to_error_object(env, error));
  }
  return array;
}

}  // namespace pointsman::addon
