#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace pointsman::nftables::json {

struct Value;
using Array = std::vector<Value>;
using Object = std::vector<std::pair<std::string, Value>>;

/// A value of the libnftables JSON schema. Numbers are 64 bit integers: nothing in the schema has a fraction.
struct Value {
  std::variant<std::nullptr_t, bool, std::int64_t, std::string, Array, Object> content = nullptr;

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(content); }
  const std::int64_t* number() const { return std::get_if<std::int64_t>(&content); }
  const std::string* string() const { return std::get_if<std::string>(&content); }
  const Array* array() const { return std::get_if<Array>(&content); }
  const Object* object() const { return std::get_if<Object>(&content); }
};

/// Deepest nesting accepted.
constexpr int kMaxDepth = 32;

}  // namespace pointsman::nftables::json
