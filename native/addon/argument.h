#pragma once

#include <napi.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pointsman::addon {

using Bytes = std::vector<std::uint8_t>;
using ByteView = std::span<const std::uint8_t>;

/// The first thing wrong with the arguments of a call; later ones are ignored, so that it is asked for once.
class Misuse {
 public:
  explicit Misuse(Napi::Env env) : env_(env) {}

  void report(const std::string& path, const std::string& expected, const std::string& found);
  /// True when something was wrong, or a getter of the caller's threw.
  bool failed() const { return failed_ || env_.IsExceptionPending(); }
  /// Leaves a TypeError (or what the getter threw) pending; what the call then answers.
  Napi::Value raise() const;

 private:
  Napi::Env env_;
  bool failed_ = false;
  std::string message_;
};

/// A value that came from JavaScript and its path, such as `operations[3].keys`. The readers complain once and answer an empty value.
///
///     Misuse misuse(info.Env());
///     const Argument filter(info[0], "filter", misuse);
///     const std::uint32_t protocol = filter.member("protocol").integer(0, 255);
///     if (misuse.failed()) return misuse.raise();
class Argument {
 public:
  Argument(Napi::Value value, std::string path, Misuse& misuse)
      : value_(value), path_(std::move(path)), misuse_(&misuse) {}

  bool is_null() const { return !value_.IsEmpty() && value_.IsNull(); }
  bool is_undefined() const { return !value_.IsEmpty() && value_.IsUndefined(); }
  /// Empty after a complaint.
  const Napi::Value& value() const { return value_; }
  Argument member(const char* name) const;

  /// A string of `least` to `most` bytes of UTF-8 without NUL.
  std::string text(std::size_t least, std::size_t most) const;
  /// One of two words; true for the second.
  bool either(const char* first, const char* second) const;
  /// The index of the value among some words.
  std::size_t word(std::initializer_list<const char*> words) const;
  bool flag() const;
  std::uint32_t integer(std::uint32_t least, std::uint32_t most) const;
  /// A copy of a Uint8Array (or Buffer).
  Bytes bytes() const;
  /// A copy of a Uint8Array of exactly `length` bytes; `why` explains the length in the complaint.
  Bytes bytes(std::size_t length, const std::string& why) const;
  std::vector<Argument> items() const;
  /// The own enumerable members of an object whose names are strings.
  std::vector<std::pair<std::string, Argument>> members() const;

  void expect(const std::string& expected) const;
  const std::string& path() const { return path_; }

 private:
  Napi::Value value_;
  std::string path_;
  Misuse* misuse_;
};

/// A Uint8Array over a copy of `bytes`.
Napi::Value to_uint8_array(Napi::Env env, ByteView bytes);

}  // namespace pointsman::addon
