#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"

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

template <typename T, typename E = Error>
using Result = pointsman::Result<T, E>;

using pointsman::Done;

/// The result of an action that yields nothing.
using Status = Result<Done>;

}  // namespace pointsman::netlink
