#pragma once

#include <napi.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pointsman::addon {

inline Napi::Value boolean_value(Napi::Env env, const bool& value) { return Napi::Boolean::New(env, value); }

inline Napi::Value texts_value(Napi::Env env, const std::vector<std::string>& texts) {
  const Napi::Array array = Napi::Array::New(env, texts.size());
  for (std::uint32_t index = 0; index < texts.size(); ++index) array.Set(index, Napi::String::New(env, texts[index]));
  return array;
}

inline Napi::Value numbers_value(Napi::Env env, const std::vector<double>& numbers) {
  Napi::Float64Array array = Napi::Float64Array::New(env, numbers.size());
  if (!numbers.empty() && !env.IsExceptionPending()) std::copy(numbers.begin(), numbers.end(), array.Data());
  return array;
}

inline Napi::Value text_or_null(Napi::Env env, const std::optional<std::string>& text) {
  if (!text) return env.Null();
  return Napi::String::New(env, *text);
}

}  // namespace pointsman::addon
