#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "nftables/value.h"

namespace pointsman::nftables {

/// The first thing found wrong while compiling; later ones are ignored, so that it is asked for once.
class Diagnosis {
 public:
  void fail(const std::string& path, const std::string& message) {
    if (!text_) text_ = path + ": " + message;
  }
  bool failed() const { return text_.has_value(); }
  const std::string& text() const { return *text_; }

 private:
  std::optional<std::string> text_;
};

/// A place in a JSON value: what is there, its path, and where complaints go. A cursor on a missing value yields missing values; the
/// readers complain once and answer an empty value.
class Cursor {
 public:
  Cursor(const json::Value* value, std::string path, Diagnosis& diagnosis)
      : value_(value), path_(std::move(path)), diagnosis_(&diagnosis) {}

  bool present() const { return value_ != nullptr; }
  bool is_null() const { return value_ != nullptr && value_->is_null(); }
  const json::Array* array() const { return value_ == nullptr ? nullptr : value_->array(); }
  const json::Object* object() const { return value_ == nullptr ? nullptr : value_->object(); }
  const std::string* string() const { return value_ == nullptr ? nullptr : value_->string(); }
  const std::int64_t* number() const { return value_ == nullptr ? nullptr : value_->number(); }

  Cursor member(std::string_view name) const;
  Cursor item(std::size_t index) const;
  /// The only member of an object, as the schema tags its unions: its name, and a cursor on its value. Complains about anything else.
  std::optional<std::pair<std::string, Cursor>> tagged() const;

  std::string need_string() const;
  std::int64_t need_number(std::int64_t least, std::int64_t most) const;
  /// Complains about members that are not listed: what would be ignored is refused.
  void only(std::initializer_list<std::string_view> names) const;
  /// Complains unless the value is null or an empty object.
  void need_nothing() const;

  void fail(const std::string& message) const { diagnosis_->fail(path_, message); }
  /// Complains about the value itself, printing it.
  void refuse(const std::string& expected) const;
  bool failed() const { return diagnosis_->failed(); }
  const std::string& path() const { return path_; }

 private:
  const json::Value* value_;
  std::string path_;
  Diagnosis* diagnosis_;
};

}  // namespace pointsman::nftables
