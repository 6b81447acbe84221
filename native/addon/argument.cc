#include "addon/argument.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pointsman::addon {

namespace {

constexpr std::size_t kShownText = 40;

std::string shown(const Napi::Value& value) {
  if (value.IsEmpty() || value.IsUndefined()) return "undefined";
  if (value.IsNull()) return "null";
  if (value.IsBoolean()) return value.As<Napi::Boolean>().Value() ? "true" : "false";
  if (value.IsNumber()) {
    const double number = value.As<Napi::Number>().DoubleValue();
    if (std::isfinite(number) && number == std::floor(number) && std::fabs(number) < 1e15) {
      return std::to_string(static_cast<std::int64_t>(number));
    }
    return std::isfinite(number) ? std::to_string(number) : "a number that is not finite";
  }
  if (value.IsString()) {
    const std::string text = value.As<Napi::String>().Utf8Value();
    return "\"" + (text.size() > kShownText ? text.substr(0, kShownText) + "…" : text) + "\"";
  }
  if (value.IsTypedArray()) return "a typed array of " + std::to_string(value.As<Napi::TypedArray>().ByteLength()) + " bytes";
  if (value.IsArray()) return "an array of " + std::to_string(value.As<Napi::Array>().Length());
  if (value.IsFunction()) return "a function";
  if (value.IsObject()) return "an object";
  return "another type";
}

std::string path_of(const Place& place) {
  const std::string whole = place.whole == nullptr ? "" : path_of(*place.whole);
  if (place.name == nullptr) return whole + "[" + std::to_string(place.index) + "]";
  return whole.empty() ? place.name : whole + "." + place.name;
}

}  // namespace

void Misuse::report(const Place& place, const std::string& expected, const std::string& found) {
  if (failed()) return;
  failed_ = true;
  const std::string path = path_of(place);
  message_ = (path.empty() ? "the argument" : path) + ": expected " + expected + ", found " + found;
}

Napi::Value Misuse::raise() const {
  if (!env_.IsExceptionPending() && failed_) Napi::TypeError::New(env_, message_).ThrowAsJavaScriptException();
  return env_.Undefined();
}

void Argument::expect(const std::string& expected) const {
  if (!misuse_->failed()) misuse_->report(*place_, expected, shown(value_));
}

Argument Argument::member(const char* name) const {
  if (misuse_->failed()) return part({}, name);
  if (value_.IsEmpty() || !value_.IsObject()) {
    expect("an object");
    return part({}, name);
  }
  return part(value_.As<Napi::Object>().Get(name), name);
}

std::string Argument::text(std::size_t least, std::size_t most) const {
  if (misuse_->failed()) return "";
  if (!value_.IsEmpty() && value_.IsString()) {
    std::string text = value_.As<Napi::String>().Utf8Value();
    if (text.size() >= least && text.size() <= most && text.find('\0') == std::string::npos) return text;
  }
  expect("a string of " + std::to_string(least) + " to " + std::to_string(most) + " bytes without NUL");
  return "";
}

bool Argument::either(const char* first, const char* second) const {
  if (misuse_->failed()) return false;
  if (!value_.IsEmpty() && value_.IsString()) {
    const std::string text = value_.As<Napi::String>().Utf8Value();
    if (text == first) return false;
    if (text == second) return true;
  }
  expect("\"" + std::string(first) + "\" or \"" + second + "\"");
  return false;
}

std::size_t Argument::word(std::initializer_list<const char*> words) const {
  if (misuse_->failed()) return 0;
  std::string expected;
  const std::string text = !value_.IsEmpty() && value_.IsString() ? value_.As<Napi::String>().Utf8Value() : "";
  for (auto each = words.begin(); each != words.end(); ++each) {
    if (text == *each) return static_cast<std::size_t>(each - words.begin());
    if (!expected.empty()) expected += each + 1 == words.end() ? " or " : ", ";
    expected += "\"" + std::string(*each) + "\"";
  }
  expect(expected);
  return 0;
}

bool Argument::flag() const {
  if (misuse_->failed()) return false;
  if (!value_.IsEmpty() && value_.IsBoolean()) return value_.As<Napi::Boolean>().Value();
  expect("a boolean");
  return false;
}

std::uint32_t Argument::integer(std::uint32_t least, std::uint32_t most) const {
  if (misuse_->failed()) return least;
  if (!value_.IsEmpty() && value_.IsNumber()) {
    const double number = value_.As<Napi::Number>().DoubleValue();
    if (number >= least && number <= most && number == std::floor(number)) return static_cast<std::uint32_t>(number);
  }
  expect("an integer from " + std::to_string(least) + " to " + std::to_string(most));
  return least;
}

int Argument::descriptor() const { return static_cast<int>(integer(0, std::numeric_limits<std::int32_t>::max())); }

Bytes Argument::bytes() const {
  if (misuse_->failed()) return {};
  if (!value_.IsEmpty() && value_.IsTypedArray()) {
    napi_typedarray_type type = napi_int8_array;
    std::size_t length = 0;
    void* start = nullptr;
    const napi_status status =
        napi_get_typedarray_info(value_.Env(), value_, &type, &length, &start, nullptr, nullptr);
    if (status == napi_ok && type == napi_uint8_array) {
      const auto* first = static_cast<const std::uint8_t*>(start);
      return length == 0 ? Bytes() : Bytes(first, first + length);
    }
  }
  expect("Uint8Array");
  return {};
}

Bytes Argument::bytes(std::size_t length, const char* why) const {
  Bytes copy = bytes();
  if (!misuse_->failed() && copy.size() != length) {
    expect("Uint8Array of " + std::to_string(length) + " bytes (" + why + ")");
  }
  return copy;
}

Bytes Argument::rows(std::uint32_t count, const char* field, std::size_t length) const {
  Bytes copy = bytes();
  const std::size_t all = count * length;
  if (!misuse_->failed() && copy.size() != all) {
    const std::string why = "count " + std::to_string(count) + " × " + field + " " + std::to_string(length);
    expect("Uint8Array of " + std::to_string(all) + " bytes (" + why + ")");
  }
  return copy;
}

std::vector<Argument> Argument::items() const {
  std::vector<Argument> items;
  if (misuse_->failed()) return items;
  if (value_.IsEmpty() || !value_.IsArray()) {
    expect("an array");
    return items;
  }
  const auto array = value_.As<Napi::Array>();
  const std::uint32_t length = array.Length();
  items.reserve(length);
  for (std::uint32_t index = 0; index < length && !misuse_->failed(); ++index) {
    items.push_back(part(array.Get(index), nullptr, index));
  }
  return items;
}

std::vector<std::pair<std::string, Argument>> Argument::members() const {
  std::vector<std::pair<std::string, Argument>> members;
  if (misuse_->failed()) return members;
  if (value_.IsEmpty() || !value_.IsObject()) {
    expect("an object");
    return members;
  }
  const auto object = value_.As<Napi::Object>();
  napi_value names = nullptr;
  const auto filter = static_cast<napi_key_filter>(napi_key_enumerable | napi_key_skip_symbols);
  if (napi_get_all_property_names(object.Env(), object, napi_key_own_only, filter, napi_key_numbers_to_strings, &names) != napi_ok) {
    expect("an object");
    return members;
  }
  const Napi::Array list(object.Env(), names);
  const std::uint32_t length = list.Length();
  members.reserve(length);
  for (std::uint32_t index = 0; index < length && !misuse_->failed(); ++index) {
    const Napi::Value name = list.Get(index);
    std::string text = name.As<Napi::String>().Utf8Value();
    const char* kept = misuse_->keep(text);
    members.emplace_back(std::move(text), part(object.Get(name), kept));
  }
  return members;
}

Napi::Value to_uint8_array(Napi::Env env, ByteView bytes) {
  Napi::Uint8Array array = Napi::Uint8Array::New(env, bytes.size());
  if (!bytes.empty() && !env.IsExceptionPending()) std::copy(bytes.begin(), bytes.end(), array.Data());
  return array;
}

}  // namespace pointsman::addon
