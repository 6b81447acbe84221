#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netlink/byte_order.h"

namespace pointsman::nftables {

using netlink::Bytes;
using netlink::ByteView;

/// nft's own numbers, stored in a set's user data.
enum class ByteOrder : std::uint32_t { kNone = 0, kHost = 1, kNetwork = 2 };

/// What a value in a register or a set key is. The first group are types a set can be declared with.
enum class TypeName {
  kIpv4Address,
  kIpv6Address,
  kInetProtocol,
  kInetService,
  kMark,
  kInterfaceName,
  kInteger,
  kCtState,
  kCtDirection,
  kCtStatus,
  kFibType,
  kNfProtocol,
  kTcpFlags,
};

struct Datatype {
  TypeName type;
  const char* name;
  /// nft's type number, stored in NFTA_SET_KEY_TYPE.
  std::uint32_t id;
  /// In bytes.
  std::uint32_t length;
  ByteOrder order;
  /// Values are sets of bits: `in` tests for any of them.
  bool bitmask;
};

const Datatype& datatype(TypeName type);
/// A type a set may be declared with, by nft's name; null for others.
const Datatype* declared_type(std::string_view name);
/// The type by nft's number; null for types this addon does not know.
const Datatype* type_of_id(std::uint32_t id);

/// The components of a concatenation's type number, in order; nothing when one is unknown.
std::optional<std::vector<const Datatype*>> components_of(std::uint32_t id);

/// `ipv4_addr . inet_proto`, or `type 0x…` for numbers with unknown parts.
std::string type_text(std::uint32_t id);

/// Parses a constant: addresses, service numbers, interface names, protocol, state, status and address type names. `text` in nft's words;
/// the result is in the register's layout. Nothing when it is no such value.
std::optional<Bytes> parse_constant(const Datatype& type, std::string_view text);
/// A number as the type holds it; nothing when out of range or not a number type.
std::optional<Bytes> number_constant(const Datatype& type, std::int64_t number);

/// A value of the type in nft's words.
std::string value_text(const Datatype& type, ByteView value);
/// A key of a set: its components joined with ` . `, or hex when the type is unknown or does not fit the length.
std::string key_text(std::uint32_t type_id, ByteView key);

/// `0x` and two digits a byte.
std::string hex_text(ByteView bytes);

}  // namespace pointsman::nftables
