#pragma once

#include <napi.h>

#include <cstdint>
#include <optional>
#include <string>

namespace pointsman::addon {

/// The fields of a rejected promise; the twin of NativeErrorFields in src/native/errors.ts.
struct NativeError {
  /// As the contract lists them.
  const char* code = "ERR_NETLINK";
  /// An errno, or on Windows an HRESULT; 0 for none.
  int error_number = 0;
  /// Such as `nft transaction`; the contract lists them.
  const char* operation = "";
  /// What went wrong, beyond errno and the kernel's message; may be empty.
  std::string reason;
  std::optional<std::string> kernel_message;
  std::optional<std::string> object;
  std::optional<std::uint32_t> index;
  std::optional<std::uint32_t> element;
  /// What to do about it; empty: what its number suggests.
  std::string advice;
};

/// The one line a log shows: operation, object, errno with its meaning, the kernel's message.
std::string message_of(const NativeError& error);

/// The Error object with every field set; empty when the environment can no longer run JavaScript.
Napi::Value to_error_object(Napi::Env env, const NativeError& error);

}  // namespace pointsman::addon
