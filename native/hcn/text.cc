#include "hcn/text.h"

#include <cstddef>

namespace pointsman::hcn {

namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

void append_utf8(std::string& text, std::uint32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | (code >> 6));
    text += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0 | (code >> 12));
    text += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    text += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    text += static_cast<char>(0xf0 | (code >> 18));
    text += static_cast<char>(0x80 | ((code >> 12) & 0x3f));
    text += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    text += static_cast<char>(0x80 | (code & 0x3f));
  }
}

bool is_high_surrogate(std::uint32_t unit) { return unit >= 0xd800 && unit < 0xdc00; }
bool is_low_surrogate(std::uint32_t unit) { return unit >= 0xdc00 && unit < 0xe000; }

template <typename Char>
std::optional<std::uint32_t> hex_value(Char digit) {
  if (digit >= '0' && digit <= '9') return static_cast<std::uint32_t>(digit - '0');
  if (digit >= 'a' && digit <= 'f') return static_cast<std::uint32_t>(digit - 'a' + 10);
  if (digit >= 'A' && digit <= 'F') return static_cast<std::uint32_t>(digit - 'A' + 10);
  return {};
}

std::optional<std::uint64_t> read_hex(std::string_view text) {
  std::uint64_t value = 0;
  for (const char digit : text) {
    const auto read = hex_value(digit);
    if (!read) return {};
    value = value << 4 | *read;
  }
  return value;
}

void append_hex(std::string& text, std::uint64_t value, int digits) {
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4) text += kHexDigits[(value >> shift) & 0xf];
}

/// Walks over JSON text without building anything of it: what HNS answers is passed on as it is, but for the few members that are read here. After the first
/// thing that is not JSON every step fails.
class Scanner {
 public:
  explicit Scanner(std::u16string_view text) : text_(text) {}

  bool take(char16_t wanted) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  bool at_end() {
    skip_blanks();
    return at_ == text_.size();
  }

  /// A string with its escapes resolved.
  std::optional<std::u16string> string() {
    if (!take(u'"')) return {};
    std::u16string read;
    while (at_ < text_.size()) {
      const char16_t unit = text_[at_++];
      if (unit == u'"') return read;
      if (unit != u'\\') {
        read += unit;
      } else if (!escape(read)) {
        return {};
      }
    }
    return {};
  }

  /// A whole number that 32 bits hold.
  std::optional<std::uint32_t> number() {
    skip_blanks();
    std::uint64_t value = 0;
    const std::size_t start = at_;
    while (at_ < text_.size() && text_[at_] >= u'0' && text_[at_] <= u'9' && value <= UINT32_MAX) {
      value = value * 10 + (text_[at_++] - u'0');
    }
    if (at_ == start || value > UINT32_MAX) return {};
    return static_cast<std::uint32_t>(value);
  }

  /// Any value: nesting is counted, so its depth costs nothing.
  bool skip_value() {
    std::size_t depth = 0;
    do {
      skip_blanks();
      if (at_ >= text_.size()) return false;
      const char16_t unit = text_[at_];
      if (unit == u'"') {
        if (!string()) return false;
        continue;
      }
      if (unit == u'{' || unit == u'[') ++depth;
      if (unit == u'}' || unit == u']') {
        if (depth == 0) return false;
        --depth;
      }
      if (depth == 0 && (unit == u',' || unit == u':')) return false;
      ++at_;
      if (depth == 0 && unit != u'}' && unit != u']') skip_word();
    } while (depth > 0);
    return true;
  }

  /// Calls with each member's name; the callee takes the value. Whether it was an object, all of which was taken.
  template <typename Member>
  bool object(const Member& member) {
    if (!take(u'{')) return false;
    if (take(u'}')) return true;
    do {
      const auto name = string();
      if (!name || !take(u':') || !member(*name)) return false;
    } while (take(u','));
    return take(u'}');
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == u' ' || text_[at_] == u'\t' || text_[at_] == u'\n' || text_[at_] == u'\r')) ++at_;
  }

  /// The rest of a number, true, false or null.
  void skip_word() {
    while (at_ < text_.size() && std::u16string_view(u" \t\r\n,:{}[]\"").find(text_[at_]) == std::u16string_view::npos) ++at_;
  }

  bool escape(std::u16string& read) {
    if (at_ >= text_.size()) return false;
    const char16_t kind = text_[at_++];
    constexpr std::u16string_view kKinds = u"\"\\/bfnrt";
    constexpr std::u16string_view kMeant = u"\"\\/\b\f\n\r\t";
    if (const std::size_t known = kKinds.find(kind); known != std::u16string_view::npos) {
      read += kMeant[known];
      return true;
    }
    if (kind != u'u' || text_.size() - at_ < 4) return false;
    std::uint32_t unit = 0;
    for (int digit = 0; digit < 4; ++digit) {
      const auto value = hex_value(text_[at_++]);
      if (!value) return false;
      unit = unit << 4 | *value;
    }
    read += static_cast<char16_t>(unit);
    return true;
  }

  std::u16string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string to_utf8(std::u16string_view text) {
  std::string utf8;
  utf8.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::uint32_t code = text[at];
    if (is_high_surrogate(code) && at + 1 < text.size() && is_low_surrogate(text[at + 1])) {
      code = 0x10000 + ((code - 0xd800) << 10) + (text[++at] - 0xdc00u);
    } else if (is_high_surrogate(code) || is_low_surrogate(code)) {
      code = 0xfffd;
    }
    append_utf8(utf8, code);
  }
  return utf8;
}

std::string guid_text(const Guid& guid) {
  std::string text;
  append_hex(text, guid.data1, 8);
  text += '-';
  append_hex(text, guid.data2, 4);
  text += '-';
  append_hex(text, guid.data3, 4);
  for (std::size_t byte = 0; byte < sizeof guid.data4; ++byte) {
    if (byte == 0 || byte == 2) text += '-';
    append_hex(text, guid.data4[byte], 2);
  }
  return text;
}

std::optional<Guid> read_guid(std::string_view text) {
  if (text.size() == 38 && text.front() == '{' && text.back() == '}') text = text.substr(1, 36);
  if (text.size() != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-') return {};
  const auto first = read_hex(text.substr(0, 8));
  const auto second = read_hex(text.substr(9, 4));
  const auto third = read_hex(text.substr(14, 4));
  const auto fourth = read_hex(text.substr(19, 4));
  const auto rest = read_hex(text.substr(24, 12));
  if (!first || !second || !third || !fourth || !rest) return {};
  Guid guid{static_cast<std::uint32_t>(*first), static_cast<std::uint16_t>(*second), static_cast<std::uint16_t>(*third), {}};
  const std::uint64_t bytes = *fourth << 48 | *rest;
  for (int byte = 0; byte < 8; ++byte) guid.data4[byte] = static_cast<std::uint8_t>(bytes >> (56 - byte * 8));
  return guid;
}

std::optional<std::vector<Guid>> read_guids(std::u16string_view json) {
  Scanner scanner(json);
  std::vector<Guid> guids;
  if (!scanner.take(u'[')) return {};
  if (scanner.take(u']')) return scanner.at_end() ? std::optional(guids) : std::nullopt;
  do {
    const auto text = scanner.string();
    const auto guid = text ? read_guid(to_utf8(*text)) : std::nullopt;
    if (!guid) return {};
    guids.push_back(*guid);
  } while (scanner.take(u','));
  if (!scanner.take(u']') || !scanner.at_end()) return {};
  return guids;
}

std::optional<Guid> read_id(std::u16string_view json) {
  std::optional<std::u16string> id;
  Scanner scanner(json);
  const bool read = scanner.object([&](const std::u16string& name) {
    return name == u"ID" ? (id = scanner.string()).has_value() : scanner.skip_value();
  });
  return read && id ? read_guid(to_utf8(*id)) : std::nullopt;
}

ErrorRecord read_error_record(std::u16string_view json) {
  ErrorRecord record;
  std::optional<std::u16string> words;
  Scanner scanner(json);
  const bool read = scanner.object([&](const std::u16string& name) {
    if (name == u"Error") return (words = scanner.string()).has_value();
    if (name == u"ErrorCode") return (record.code = scanner.number()).has_value();
    return scanner.skip_value();
  });
  record.words = to_utf8(read && words && !words->empty() ? std::u16string_view(*words) : json);
  return record;
}

std::optional<Version> read_version(std::u16string_view json) {
  std::optional<std::uint32_t> major;
  std::optional<std::uint32_t> minor;
  Scanner scanner(json);
  const auto output = [&](const std::u16string& name) {
    if (name == u"Major") return (major = scanner.number()).has_value();
    if (name == u"Minor") return (minor = scanner.number()).has_value();
    return scanner.skip_value();
  };
  const bool read = scanner.object(
      [&](const std::u16string& name) { return name == u"Output" ? scanner.object(output) : scanner.skip_value(); });
  if (!read || !major || !minor) return {};
  return Version{*major, *minor};
}

}  // namespace pointsman::hcn
