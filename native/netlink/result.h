#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace pointsman::netlink {

enum class ErrorKind {
  kSystem,  // the kernel's verdict, or a failing socket call
  kDecode,  // an answer that is not well formed
};

/// Why an exchange with the kernel failed.
struct Error {
  ErrorKind kind = ErrorKind::kSystem;
  /// errno, positive; 0 when there is none.
  int code = 0;
  /// What was being done, or what is malformed.
  std::string message;
  /// The kernel's extended message (NLMSGERR_ATTR_MSG).
  std::optional<std::string> kernel_message;
  /// Sequence number of the message the kernel refused.
  std::optional<std::uint32_t> sequence;
  /// Offset of the offending attribute from the start of that message (NLMSGERR_ATTR_OFFS).
  std::optional<std::uint32_t> offset;
};

inline Error system_error(int code, std::string message) {
  return Error{ErrorKind::kSystem, code, std::move(message), {}, {}, {}};
}

inline Error decode_error(std::string message) {
  return Error{ErrorKind::kDecode, 0, std::move(message), {}, {}, {}};
}

/// A value or the reason there is none. Check `ok()` before taking either side.
template <typename T, typename E = Error>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  T& value() { return *std::get_if<0>(&state_); }
  const T& value() const { return *std::get_if<0>(&state_); }
  E& error() { return *std::get_if<1>(&state_); }
  const E& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, E> state_;
};

struct Done {};

/// The result of an action that yields nothing.
using Status = Result<Done>;

}  // namespace pointsman::netlink
