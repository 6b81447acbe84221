#include "addon/linux/json_argument.h"

#include <cmath>

namespace pointsman::addon {

namespace {

using nftables::json::Value;

/// Integers that a JavaScript number holds exactly.
constexpr double kMaxInteger = 9007199254740991.0;

Value read(const Argument& at, int depth);

Value read_number(const Argument& at, double number) {
  if (number == std::floor(number) && std::fabs(number) <= kMaxInteger) return Value{static_cast<std::int64_t>(number)};
  at.expect("an integer");
  return Value{};
}

Value read_array(const Argument& at, int depth) {
  nftables::json::Array items;
  for (const Argument& item : at.items()) items.push_back(read(item, depth + 1));
  return Value{std::move(items)};
}

Value read_object(const Argument& at, int depth) {
  nftables::json::Object members;
  for (auto& [name, member] : at.members()) {
    if (!member.is_undefined()) members.emplace_back(name, read(member, depth + 1));
  }
  return Value{std::move(members)};
}

Value read(const Argument& at, int depth) {
  if (depth > nftables::json::kMaxDepth) {
    at.expect("less deeply nested values");
    return Value{};
  }
  const Napi::Value& value = at.value();
  if (value.IsEmpty() || value.IsNull()) return Value{};
  if (value.IsBoolean()) return Value{value.As<Napi::Boolean>().Value()};
  if (value.IsNumber()) return read_number(at, value.As<Napi::Number>().DoubleValue());
  if (value.IsString()) return Value{value.As<Napi::String>().Utf8Value()};
  if (value.IsArray()) return read_array(at, depth);
  if (value.IsObject() && !value.IsFunction() && !value.IsTypedArray()) return read_object(at, depth);
  at.expect("an object, array, string, integer, boolean or null");
  return Value{};
}

}  // namespace

Value json_argument(const Argument& at) { return read(at, 0); }

}  // namespace pointsman::addon
