#include "test/json_text.h"

#include <charconv>
#include <optional>

namespace pointsman::nftables::json {

namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  netlink::Result<Value, SyntaxError> document() {
    Value value;
    if (!parse_value(value, 0)) return error_;
    skip_space();
    if (at_ < text_.size()) return SyntaxError{"text after the value", at_};
    return value;
  }

 private:
  bool fail(std::string message) {
    error_ = SyntaxError{std::move(message), at_};
    return false;
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
  }

  bool take(char expected) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != expected) return false;
    ++at_;
    return true;
  }

  bool literal(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return fail("unexpected character");
    at_ += word.size();
    return true;
  }

  bool parse_value(Value& to, int depth) {
    if (depth > kMaxDepth) return fail("nested too deeply");
    skip_space();
    if (at_ >= text_.size()) return fail("unexpected end");
    switch (text_[at_]) {
      case '{':
        return parse_object(to, depth);
      case '[':
        return parse_array(to, depth);
      case '"': {
        std::string text;
        if (!parse_string(text)) return false;
        to.content = std::move(text);
        return true;
      }
      case 't':
        to.content = true;
        return literal("true");
      case 'f':
        to.content = false;
        return literal("false");
      case 'n':
        to.content = nullptr;
        return literal("null");
      default:
        return parse_number(to);
    }
  }

  bool parse_object(Value& to, int depth) {
    ++at_;
    Object members;
    if (!take('}')) {
      do {
        skip_space();
        std::string key;
        if (at_ >= text_.size() || text_[at_] != '"') return fail("expected a member name");
        if (!parse_string(key)) return false;
        for (const auto& member : members) {
          if (member.first == key) return fail("member \"" + key + "\" is repeated");
        }
        if (!take(':')) return fail("expected ':'");
        Value value;
        if (!parse_value(value, depth + 1)) return false;
        members.emplace_back(std::move(key), std::move(value));
      } while (take(','));
      if (!take('}')) return fail("expected ',' or '}'");
    }
    to.content = std::move(members);
    return true;
  }

  bool parse_array(Value& to, int depth) {
    ++at_;
    Array items;
    if (!take(']')) {
      do {
        Value value;
        if (!parse_value(value, depth + 1)) return false;
        items.push_back(std::move(value));
      } while (take(','));
      if (!take(']')) return fail("expected ',' or ']'");
    }
    to.content = std::move(items);
    return true;
  }

  bool parse_number(Value& to) {
    const std::size_t start = at_;
    if (at_ < text_.size() && text_[at_] == '-') ++at_;
    const std::size_t digits = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    if (at_ == digits) return fail("unexpected character");
    if (text_[digits] == '0' && at_ > digits + 1) return fail("a number starts with 0");
    if (at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E')) {
      return fail("numbers are integers here");
    }
    std::int64_t number = 0;
    const auto parsed = std::from_chars(text_.data() + start, text_.data() + at_, number);
    if (parsed.ec != std::errc{}) return fail("number beyond 64 bits");
    to.content = number;
    return true;
  }

  std::optional<std::uint32_t> hex4() {
    if (text_.size() - at_ < 4) return std::nullopt;
    std::uint32_t unit = 0;
    const auto parsed = std::from_chars(text_.data() + at_, text_.data() + at_ + 4, unit, 16);
    if (parsed.ec != std::errc{} || parsed.ptr != text_.data() + at_ + 4) return std::nullopt;
    at_ += 4;
    return unit;
  }

  static void append_utf8(std::string& to, std::uint32_t point) {
    if (point < 0x80) {
      to += static_cast<char>(point);
    } else if (point < 0x800) {
      to += static_cast<char>(0xc0 | point >> 6);
      to += static_cast<char>(0x80 | (point & 0x3f));
    } else if (point < 0x10000) {
      to += static_cast<char>(0xe0 | point >> 12);
      to += static_cast<char>(0x80 | (point >> 6 & 0x3f));
      to += static_cast<char>(0x80 | (point & 0x3f));
    } else {
      to += static_cast<char>(0xf0 | point >> 18);
      to += static_cast<char>(0x80 | (point >> 12 & 0x3f));
      to += static_cast<char>(0x80 | (point >> 6 & 0x3f));
      to += static_cast<char>(0x80 | (point & 0x3f));
    }
  }

  bool parse_unicode_escape(std::string& to) {
    const auto unit = hex4();
    if (!unit) return fail("expected four hex digits");
    if (*unit >= 0xdc00 && *unit < 0xe000) return fail("unpaired surrogate");
    if (*unit < 0xd800 || *unit >= 0xe000) {
      append_utf8(to, *unit);
      return true;
    }
    if (text_.substr(at_, 2) != "\\u") return fail("unpaired surrogate");
    at_ += 2;
    const auto low = hex4();
    if (!low || *low < 0xdc00 || *low >= 0xe000) return fail("unpaired surrogate");
    append_utf8(to, 0x10000 + ((*unit - 0xd800) << 10) + (*low - 0xdc00));
    return true;
  }

  bool parse_escape(std::string& to) {
    if (at_ >= text_.size()) return fail("unexpected end");
    const char escape = text_[at_++];
    switch (escape) {
      case '"':
      case '\\':
      case '/':
        to += escape;
        return true;
      case 'b':
        to += '\b';
        return true;
      case 'f':
        to += '\f';
        return true;
      case 'n':
        to += '\n';
        return true;
      case 'r':
        to += '\r';
        return true;
      case 't':
        to += '\t';
        return true;
      case 'u':
        return parse_unicode_escape(to);
      default:
        return fail("unknown escape");
    }
  }

  bool parse_string(std::string& to) {
    ++at_;
    while (at_ < text_.size()) {
      const char next = text_[at_];
      if (next == '"') {
        ++at_;
        return true;
      }
      if (static_cast<unsigned char>(next) < 0x20) return fail("control character in a string");
      ++at_;
      if (next != '\\') {
        to += next;
        continue;
      }
      if (!parse_escape(to)) return false;
    }
    return fail("unexpected end");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  SyntaxError error_;
};

}  // namespace

netlink::Result<Value, SyntaxError> parse(std::string_view text) { return Parser(text).document(); }

}  // namespace pointsman::nftables::json
