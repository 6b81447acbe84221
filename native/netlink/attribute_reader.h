#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "netlink/byte_order.h"

namespace pointsman::netlink {

/// One attribute of a received message. The typed readers answer nothing when the payload is too short.
struct Attribute {
  /// Without NLA_F_NESTED and NLA_F_NET_BYTEORDER.
  std::uint16_t type = 0;
  ByteView payload;

  std::optional<std::uint8_t> u8() const;
  std::optional<std::uint16_t> be16() const;
  std::optional<std::uint32_t> be32() const;
  std::optional<std::uint64_t> be64() const;
  std::optional<std::uint16_t> host16() const;
  std::optional<std::uint32_t> host32() const;
  /// Up to the first NUL or the end.
  std::string_view string() const;
};

/// Walks a run of attributes, trusting no length.
///
///     AttributeReader reader(bytes);
///     while (const auto attribute = reader.next()) …
///     if (reader.malformed()) …
class AttributeReader {
 public:
  explicit AttributeReader(ByteView attributes) : rest_(attributes) {}

  /// The next attribute; nothing at the end or at the first attribute that does not fit.
  std::optional<Attribute> next();
  bool malformed() const { return malformed_; }

 private:
  ByteView rest_;
  bool malformed_ = false;
};

}  // namespace pointsman::netlink
