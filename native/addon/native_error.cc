#include "addon/native_error.h"

#include <cerrno>
#include <cstring>

namespace pointsman::addon {

namespace {

std::string errno_name(int number) {
  const char* name = strerrorname_np(number);
  return name == nullptr ? "errno " + std::to_string(number) : name;
}

Napi::Value text_or_null(Napi::Env env, const std::optional<std::string>& text) {
  if (!text) return env.Null();
  return Napi::String::New(env, *text);
}

Napi::Value number_or_null(Napi::Env env, const std::optional<std::uint32_t>& number) {
  if (!number) return env.Null();
  return Napi::Number::New(env, *number);
}

}  // namespace

NativeError from_netlink(const netlink::Error& error, const char* operation) {
  NativeError native;
  native.code = error.kind == netlink::ErrorKind::kDecode ? "ERR_NETLINK_DECODE" : "ERR_NETLINK";
  native.error_number = error.code;
  native.operation = operation;
  native.reason = error.message;
  native.kernel_message = error.kernel_message;
  return native;
}

std::string message_of(const NativeError& error) {
  std::string text = error.operation;
  if (error.object) text += ": " + *error.object;
  if (!error.reason.empty()) text += ": " + error.reason;
  if (error.error_number != 0) {
    text += ": " + errno_name(error.error_number) + " (" + strerrordesc_np(error.error_number) + ")";
  }
  if (error.kernel_message) text += ": " + *error.kernel_message;
  if (error.error_number == EPERM) text += "; nf_tables and conntrack need CAP_NET_ADMIN in the network namespace";
  return text;
}

Napi::Value to_error_object(Napi::Env env, const NativeError& error) {
  const Napi::Value message = Napi::String::New(env, message_of(error));
  napi_value created = nullptr;
  if (napi_create_error(env, nullptr, message, &created) != napi_ok) return {};
  Napi::Object object(env, created);
  object.Set("code", Napi::String::New(env, error.code));
  object.Set("errno", error.error_number == 0 ? env.Null() : Napi::String::New(env, errno_name(error.error_number)));
  object.Set("operation", Napi::String::New(env, error.operation));
  object.Set("kernelMessage", text_or_null(env, error.kernel_message));
  object.Set("object", text_or_null(env, error.object));
  object.Set("index", number_or_null(env, error.index));
  object.Set("element", number_or_null(env, error.element));
  return object;
}

}  // namespace pointsman::addon
