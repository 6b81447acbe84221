#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "netlink/result.h"
#include "nftables/value.h"

namespace pointsman::nftables::json {

/// Why a text is not JSON, with the offset of the offending byte.
struct SyntaxError {
  std::string message;
  std::size_t offset = 0;
};

/// Parses one JSON text (RFC 8259), so that samples can be written as such. Refused besides bad syntax: fractions and exponents, integers beyond
/// 64 bits, repeated object members, and nesting deeper than `kMaxDepth`.
netlink::Result<Value, SyntaxError> parse(std::string_view text);

}  // namespace pointsman::nftables::json
