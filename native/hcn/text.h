#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pointsman::hcn {

/// Windows' texts are UTF-16; a surrogate without its other half becomes U+FFFD.
std::string to_utf8(std::u16string_view text);

/// The parts of a GUID, as Windows has them.
struct Guid {
  std::uint32_t data1 = 0;
  std::uint16_t data2 = 0;
  std::uint16_t data3 = 0;
  std::uint8_t data4[8] = {};

  bool operator==(const Guid&) const = default;
};

/// `706f696e-7473-6d61-6e00-0a6000010050`.
std::string guid_text(const Guid& guid);
/// In either case, within braces or not; none for anything else.
std::optional<Guid> read_guid(std::string_view text);

/// The GUIDs of a JSON array of strings, which is what HNS enumerates objects by; none where it is something else.
std::optional<std::vector<Guid>> read_guids(std::u16string_view json);

/// The member `ID` of an object's properties.
std::optional<Guid> read_id(std::u16string_view json);

/// What HNS reports of a failure: `{"Success":false,"Error":"…","ErrorCode":2151350291}`.
struct ErrorRecord {
  /// All of the record where it is no such object.
  std::string words;
  std::optional<std::uint32_t> code;
};

ErrorRecord read_error_record(std::u16string_view json);

/// The version in HNS's answer to `GET /globals/version`: `{"Success":true,"Output":{"Major":15,"Minor":4}}`.
struct Version {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
};

std::optional<Version> read_version(std::u16string_view json);

/// `HCN_E_NETWORK_NOT_FOUND`; the number as `0x80041234` for one without a name here.
std::string hresult_name(std::uint32_t hresult);
/// In words; empty: there are none here.
std::string_view hresult_meaning(std::uint32_t hresult);

}  // namespace pointsman::hcn
