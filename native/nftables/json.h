#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "netlink/result.h"

namespace pointsman::nftables::json {

struct Value;
using Array = std::vector<Value>;
using Object = std::vector<std::pair<std::string, Value>>;

/// A JSON value (RFC 8259). Numbers are 64 bit integers: nothing in the nftables schema has a fraction.
struct Value {
  std::variant<std::nullptr_t, bool, std::int64_t, std::string, Array, Object> content = nullptr;

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(content); }
  const std::int64_t* number() const { return std::get_if<std::int64_t>(&content); }
  const std::string* string() const { return std::get_if<std::string>(&content); }
  const Array* array() const { return std::get_if<Array>(&content); }
  const Object* object() const { return std::get_if<Object>(&content); }
};

/// Why a text is not JSON, with the offset of the offending byte.
struct SyntaxError {
  std::string message;
  std::size_t offset = 0;
};

/// Deepest nesting accepted.
constexpr int kMaxDepth = 32;

/// Parses one value and nothing after it. Refused besides bad syntax: fractions and exponents, integers beyond 64 bits, repeated object
/// members, and nesting deeper than `kMaxDepth`.
netlink::Result<Value, SyntaxError> parse(std::string_view text);

}  // namespace pointsman::nftables::json
