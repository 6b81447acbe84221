#include <string>

#include "hcn/text.h"
#include "test/check.h"

namespace pointsman::hcn {

namespace {

TEST(texts_of_windows_become_utf8) {
  CHECK_EQUAL(to_utf8(u""), "");
  CHECK_EQUAL(to_utf8(u"ab \u00fc \u540d \U0001f600"), "ab \xc3\xbc \xe5\x90\x8d \xf0\x9f\x98\x80");
  const char16_t lone[] = {0xd83d, u'x', 0xde00};
  CHECK_EQUAL(to_utf8({lone, 3}), "\xef\xbf\xbdx\xef\xbf\xbd");
  CHECK_EQUAL(to_utf8({lone, 1}), "\xef\xbf\xbd");
}

TEST(guids_are_read_in_either_case_and_written_in_one) {
  const char* const text = "706f696e-7473-6d61-6e00-0a60000100ff";
  const auto guid = read_guid(text);
  CHECK(guid.has_value());
  CHECK_EQUAL(guid_text(*guid), text);
  CHECK_EQUAL(guid->data1, 0x706f696eu);
  CHECK_EQUAL(int{guid->data4[0]}, 0x6e);
  CHECK_EQUAL(int{guid->data4[7]}, 0xff);
  CHECK(read_guid("{706F696E-7473-6D61-6E00-0A60000100FF}") == guid);
  for (const char* wrong : {"", "706f696e", "{706f696e-7473-6d61-6e00-0a60000100ff", "706f696e-7473-6d61-6e00-0a60000100fg",
                            "706f696e07473-6d61-6e00-0a60000100ff", "706f696e-7473-6d61-6e00-0a60000100ff0"}) {
    CHECK(!read_guid(wrong).has_value());
  }
}

TEST(enumerations_are_arrays_of_guids) {
  CHECK_EQUAL(read_guids(u"[]")->size(), 0u);
  const auto two = read_guids(u" [ \"11111111-2222-3333-4444-555555555555\",\"{AAAAAAAA-2222-3333-4444-555555555555}\" ] ");
  CHECK_EQUAL(two->size(), 2u);
  CHECK_EQUAL(guid_text((*two)[1]), "aaaaaaaa-2222-3333-4444-555555555555");
  for (const char16_t* wrong : {u"", u"{}", u"[", u"[1]", u"[\"x\"]", u"[\"11111111-2222-3333-4444-555555555555\"", u"[] x",
                                u"[\"11111111-2222-3333-4444-555555555555\",]", u"[\"\\u12\"]", u"[\"\\"}) {
    CHECK(!read_guids(wrong).has_value());
  }
}

TEST(properties_have_an_id) {
  const auto id = read_id(u"{\"Name\":\"a\",\"ID\":\"AAAAAAAA-2222-3333-4444-555555555555\",\"Flags\":1}");
  CHECK_EQUAL(guid_text(*id), "aaaaaaaa-2222-3333-4444-555555555555");
  for (const char16_t* wrong : {u"{}", u"{\"ID\":1}", u"{\"ID\":\"x\"}", u"null"}) CHECK(!read_id(wrong).has_value());
}

TEST(error_records_have_words_and_a_code) {
  const auto record = read_error_record(
      u"{\"Success\":false,\"Extra\":{\"a\":[1,{\"b\":\"}]\"}],\"c\":null},\"Error\":\"The port \\\"80\\\"\\u0020exists.\",\"ErrorCode\":2151350291}");
  CHECK_EQUAL(record.words, "The port \"80\" exists.");
  CHECK_EQUAL(record.code.value_or(0), 0x803b0013u);
  CHECK_EQUAL(read_error_record(u"{\"ErrorCode\" : 5}").words, "{\"ErrorCode\" : 5}");
  CHECK_EQUAL(read_error_record(u"{\"ErrorCode\" : 5}").code.value_or(0), 5u);
  for (const char16_t* other : {u"no JSON", u"{\"Error\":", u"{\"Error\":1}", u"[]", u"{\"Error\":\"x\""}) {
    CHECK_EQUAL(read_error_record(other).words, to_utf8(other));
  }
  CHECK(!read_error_record(u"{\"ErrorCode\":4294967296}").code.has_value());
  CHECK(!read_error_record(u"{\"ErrorCode\":-1}").code.has_value());
}

TEST(depth_costs_nothing) {
  const std::u16string deep = u"{\"a\":" + std::u16string(1000000, u'[') + std::u16string(1000000, u']') + u",\"Error\":\"x\"}";
  CHECK_EQUAL(read_error_record(deep).words, "x");
  CHECK_EQUAL(read_error_record(u"{\"a\":]],\"Error\":\"x\"}").words, "{\"a\":]],\"Error\":\"x\"}");
}

TEST(the_version_of_hns) {
  const auto version = read_version(u"{\"Success\":true,\"Output\":{\"Major\":15,\"Build\":[],\"Minor\":4}}");
  CHECK_EQUAL(version->major, 15u);
  CHECK_EQUAL(version->minor, 4u);
  for (const char16_t* wrong : {u"", u"{\"Success\":false,\"Error\":\"unknown\"}", u"{\"Output\":{\"Major\":15}}", u"{\"Output\":[]}"}) {
    CHECK(!read_version(wrong).has_value());
  }
}

TEST(results_have_names) {
  CHECK_EQUAL(hresult_name(0x800700b7), "ERROR_ALREADY_EXISTS");
  CHECK_EQUAL(hresult_name(0x80070426), "ERROR_SERVICE_NOT_ACTIVE");
  CHECK_EQUAL(hresult_name(0x800706d9), "EPT_S_NOT_REGISTERED");
  CHECK_EQUAL(hresult_name(0x800706b5), "RPC_S_UNKNOWN_IF");
  CHECK_EQUAL(hresult_name(0x8007045b), "ERROR_SHUTDOWN_IN_PROGRESS");
  CHECK_EQUAL(hresult_name(0x80070102), "WAIT_TIMEOUT");
  CHECK_EQUAL(hresult_meaning(0x803b0001), "there is no such network");
  CHECK_EQUAL(hresult_name(0x80041234), "0x80041234");
  CHECK_EQUAL(hresult_meaning(0x80041234), "");
}

}  // namespace

}  // namespace pointsman::hcn
