#pragma once

#include <napi.h>

#include <vector>

#include "addon/linux/netlink_error.h"
#include "netlink/exchange.h"

namespace pointsman::addon {

/// What the `apply` functions answer: errors in an array, and how much was sent.
inline Napi::Value applied_value(Napi::Env env, const netlink::Applied& applied, const char* operation) {
  const std::vector<netlink::Refusal>& refusals = applied.refusals;
  const Napi::Array array = Napi::Array::New(env, refusals.size());
  for (std::uint32_t index = 0; index < refusals.size(); ++index) {
    const Napi::HandleScope scope(env);
    NativeError error = from_netlink(refusals[index].error, operation);
    error.object = refusals[index].object;
    error.index = refusals[index].index;
    error.element = refusals[index].element;
    array.Set(index, to_error_object(env, error));
  }
  Napi::Object value = Napi::Object::New(env);
  value.Set("refused", array);
  value.Set("bytes", Napi::Number::New(env, static_cast<double>(applied.bytes)));
  return value;
}

}  // namespace pointsman::addon
