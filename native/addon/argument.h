#pragma once

#include <napi.h>

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pointsman::addon {

using Bytes = std::vector<std::uint8_t>;
using ByteView = std::span<const std::uint8_t>;

/// Where an argument is: a name, or the index of an item, within the argument that it is part of. It is made a text only for a complaint.
struct Place {
  const Place* whole = nullptr;
  /// Null for an item.
  const char* name = nullptr;
  std::uint32_t index = 0;
};

/// The first thing wrong with the arguments of a call; later ones are ignored, so that it is asked for once. Outlives them: their places are here.
class Misuse {
 public:
  explicit Misuse(Napi::Env env) : env_(env) {}

  void report(const Place& place, const std::string& expected, const std::string& found);
  const Place* place(Place at) { return &places_.emplace_back(at); }
  /// The text for as long as this lives.
  const char* keep(const std::string& name) { return names_.emplace_back(name).c_str(); }
  /// True when something was wrong, or a getter of the caller's threw.
  bool failed() const { return failed_ || env_.IsExceptionPending(); }
  /// Leaves a TypeError (or what the getter threw) pending; what the call then answers.
  Napi::Value raise() const;

 private:
  Napi::Env env_;
  bool failed_ = false;
  std::string message_;
  std::deque<Place> places_;
  std::deque<std::string> names_;
};

/// A value that came from JavaScript and its path, such as `operations[3].keys`. The readers complain once and answer an empty value.
///
///     Misuse misuse(info.Env());
///     const Argument filter(info[0], "filter", misuse);
///     const std::uint32_t protocol = filter.member("protocol").integer(0, 255);
///     if (misuse.failed()) return misuse.raise();
class Argument {
 public:
  /// `name`: a literal; empty for an object whose members are identified by their names alone.
  Argument(Napi::Value value, const char* name, Misuse& misuse)
      : Argument(value, misuse.place({nullptr, name, 0}), misuse) {}

  bool is_null() const { return !value_.IsEmpty() && value_.IsNull(); }
  bool is_undefined() const { return !value_.IsEmpty() && value_.IsUndefined(); }
  /// Empty after a complaint.
  const Napi::Value& value() const { return value_; }
  /// `name`: a literal.
  Argument member(const char* name) const;

  /// A string of `least` to `most` bytes of UTF-8 without NUL.
  std::string text(std::size_t least, std::size_t most) const;
  /// One of two words; true for the second.
  bool either(const char* first, const char* second) const;
  /// The index of the value among some words.
  std::size_t word(std::initializer_list<const char*> words) const;
  bool flag() const;
  std::uint32_t integer(std::uint32_t least, std::uint32_t most) const;
  /// The number of an open file.
  int descriptor() const;
  /// A copy of a Uint8Array (or Buffer).
  Bytes bytes() const;
  /// A copy of a Uint8Array of exactly `length` bytes; `why` explains the length in the complaint.
  Bytes bytes(std::size_t length, const char* why) const;
  /// A copy of a Uint8Array of `count` rows, whose length the field `field` has.
  Bytes rows(std::uint32_t count, const char* field, std::size_t length) const;
  std::vector<Argument> items() const;
  /// The own enumerable members of an object whose names are strings.
  std::vector<std::pair<std::string, Argument>> members() const;

  void expect(const std::string& expected) const;

 private:
  Argument(Napi::Value value, const Place* place, Misuse& misuse) : value_(value), place_(place), misuse_(&misuse) {}

  Argument part(Napi::Value value, const char* name, std::uint32_t index = 0) const {
    return {value, misuse_->place({place_, name, index}), *misuse_};
  }

  Napi::Value value_;
  const Place* place_;
  Misuse* misuse_;
};

/// A Uint8Array over a copy of `bytes`.
Napi::Value to_uint8_array(Napi::Env env, ByteView bytes);

}  // namespace pointsman::addon
