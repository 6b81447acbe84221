#include "addon/native_error.h"

#include "addon/platform.h"
#include "addon/values.h"

namespace pointsman::addon {

namespace {

Napi::Value number_or_null(Napi::Env env, const std::optional<std::uint32_t>& number) {
  if (!number) return env.Null();
  return Napi::Number::New(env, *number);
}

}  // namespace

std::string message_of(const NativeError& error) {
  std::string text = error.operation;
  if (error.object) text += ": " + *error.object;
  if (!error.reason.empty()) text += ": " + error.reason;
  const int number = error.error_number;
  if (number != 0) text += ": " + error_name(number) + " (" + error_meaning(number) + ")";
  if (error.kernel_message) text += ": " + *error.kernel_message;
  const std::string advice = error.advice.empty() ? error_advice(number) : error.advice;
  if (!advice.empty()) text += "; " + advice;
  return text;
}

Napi::Value to_error_object(Napi::Env env, const NativeError& error) {
  const Napi::Value message = Napi::String::New(env, message_of(error));
  napi_value created = nullptr;
  if (napi_create_error(env, nullptr, message, &created) != napi_ok) return {};
  Napi::Object object(env, created);
  object.Set("code", Napi::String::New(env, error.code));
  object.Set("errno", error.error_number == 0 ? env.Null() : Napi::String::New(env, error_name(error.error_number)));
  object.Set("operation", Napi::String::New(env, error.operation));
  object.Set("kernelMessage", text_or_null(env, error.kernel_message));
  object.Set("object", text_or_null(env, error.object));
  object.Set("index", number_or_null(env, error.index));
  object.Set("element", number_or_null(env, error.element));
  return object;
}

}  // namespace pointsman::addon
