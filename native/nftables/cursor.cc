#include "nftables/cursor.h"

#include <algorithm>

namespace pointsman::nftables {

namespace {

std::string shown(const json::Value* value) {
  if (value == nullptr) return "nothing";
  if (value->is_null()) return "null";
  if (const auto* number = value->number()) return std::to_string(*number);
  if (const auto* text = value->string()) return "\"" + *text + "\"";
  if (value->array() != nullptr) return "an array";
  if (const auto* object = value->object()) {
    return object->empty() ? "an empty object" : "an object with \"" + object->front().first + "\"";
  }
  return "a boolean";
}

}  // namespace

Cursor Cursor::member(std::string_view name) const {
  const std::string path = path_.empty() ? std::string(name) : path_ + "." + std::string(name);
  const auto* members = object();
  if (members == nullptr) return {nullptr, path, *diagnosis_};
  const auto found = std::find_if(members->begin(), members->end(), [=](const auto& each) { return each.first == name; });
  return {found == members->end() ? nullptr : &found->second, path, *diagnosis_};
}

Cursor Cursor::item(std::size_t index) const {
  const auto* items = array();
  return {items == nullptr || index >= items->size() ? nullptr : &(*items)[index],
          path_ + "[" + std::to_string(index) + "]", *diagnosis_};
}

std::optional<std::pair<std::string, Cursor>> Cursor::tagged() const {
  const auto* members = object();
  if (members == nullptr || members->size() != 1) {
    refuse("an object with one member");
    return std::nullopt;
  }
  return std::pair{members->front().first, member(members->front().first)};
}

std::string Cursor::need_string() const {
  const auto* text = string();
  if (text == nullptr || text->empty()) {
    refuse("a string");
    return "";
  }
  if (text->find('\0') != std::string::npos) {
    fail("the string holds a NUL");
    return "";
  }
  return *text;
}

std::int64_t Cursor::need_number(std::int64_t least, std::int64_t most) const {
  const auto* value = number();
  if (value == nullptr || *value < least || *value > most) {
    refuse("a number from " + std::to_string(least) + " to " + std::to_string(most));
    return least;
  }
  return *value;
}

void Cursor::only(std::initializer_list<std::string_view> names) const {
  const auto* members = object();
  if (members == nullptr) {
    refuse("an object");
    return;
  }
  for (const auto& each : *members) {
    if (std::find(names.begin(), names.end(), each.first) == names.end()) member(each.first).fail("not supported here");
  }
}

void Cursor::need_nothing() const {
  if (is_null()) return;
  const auto* members = object();
  if (members == nullptr || !members->empty()) refuse("null");
}

void Cursor::refuse(const std::string& expected) const { fail("expected " + expected + ", found " + shown(value_)); }

}  // namespace pointsman::nftables
