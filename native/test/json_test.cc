#include "test/json_text.h"

#include <string>

#include "test/check.h"

namespace {

using namespace pointsman::nftables;

std::string text_of(std::string_view text) {
  const auto parsed = json::parse(text);
  if (!parsed.ok()) return "error";
  const auto* string = parsed.value().string();
  return string == nullptr ? "not a string" : *string;
}

// `offset: message`, or nothing.
std::string json_complaint(std::string_view text) {
  const auto parsed = json::parse(text);
  return parsed.ok() ? "" : std::to_string(parsed.error().offset) + ": " + parsed.error().message;
}

}  // namespace

TEST(json_values) {
  CHECK(json::parse(" null ").value().is_null());
  CHECK_EQUAL(*json::parse("-12").value().number(), -12);
  CHECK_EQUAL(*json::parse("9223372036854775807").value().number(), INT64_MAX);
  CHECK_EQUAL(json::parse("[1, [2], {}]").value().array()->size(), 3U);
  CHECK_EQUAL(json::parse(R"({"a":1,"b":[true,false]})").value().object()->size(), 2U);
}

TEST(json_strings) {
  CHECK_EQUAL(text_of(R"("a\"\\\/\b\f\n\r\t")"), "a\"\\/\b\f\n\r\t");
  CHECK_EQUAL(text_of(R"("\u00e9\u20ac\ud83d\ude00")"), "é€😀");
  CHECK_EQUAL(text_of("\"é\""), "é");
  for (const char* bad : {R"("\ud83d")", R"("\ude00")", R"("\ud83dx")", R"("\u12g4")", R"("\x")", "\"\n\"", "\"open", R"("\)"}) {
    CHECK_EQUAL(text_of(bad), "error");
  }
}

TEST(json_refusals_have_a_place) {
  CHECK_EQUAL(json_complaint("{\"a\":1,}"), "7: expected a member name");
  CHECK_EQUAL(json_complaint("[1 2]"), "3: expected ',' or ']'");
  CHECK_EQUAL(json_complaint("1.5"), "1: numbers are integers here");
  CHECK_EQUAL(json_complaint("1e3"), "1: numbers are integers here");
  CHECK_EQUAL(json_complaint("01"), "2: a number starts with 0");
  CHECK_EQUAL(json_complaint("9223372036854775808"), "19: number beyond 64 bits");
  CHECK_EQUAL(json_complaint("{\"a\":1,\"a\":2}"), "10: member \"a\" is repeated");
  CHECK_EQUAL(json_complaint("1 1"), "2: text after the value");
  CHECK_EQUAL(json_complaint(""), "0: unexpected end");
  CHECK_EQUAL(json_complaint("nul"), "0: unexpected character");
  CHECK_EQUAL(json_complaint("-"), "1: unexpected character");
}

TEST(json_depth_is_bounded) {
  const auto nested = [](int depth) {
    const auto count = static_cast<std::size_t>(depth);
    return std::string(count, '[') + std::string(count, ']');
  };
  CHECK(json::parse(nested(json::kMaxDepth)).ok());
  CHECK(!json::parse(nested(json::kMaxDepth + 2)).ok());
  CHECK(!json::parse(std::string(1'000'000, '[')).ok());
}
