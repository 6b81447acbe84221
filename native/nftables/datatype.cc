#include "nftables/datatype.h"

#include <arpa/inet.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tuple_common.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>
#include <span>

#include "netlink/text.h"

namespace pointsman::nftables {

namespace {

constexpr std::size_t kInterfaceName = 16;
// nft packs the type numbers of a concatenation's components into one, six bits each.
constexpr std::uint32_t kTypeBits = 6;
constexpr std::uint32_t kTypeMask = (1U << kTypeBits) - 1;

constexpr std::array kDatatypes{
    Datatype{TypeName::kIpv4Address, "ipv4_addr", 7, 4, ByteOrder::kNetwork, false},
    Datatype{TypeName::kIpv6Address, "ipv6_addr", 8, 16, ByteOrder::kNetwork, false},
    Datatype{TypeName::kInetProtocol, "inet_proto", 12, 1, ByteOrder::kNetwork, false},
    Datatype{TypeName::kInetService, "inet_service", 13, 2, ByteOrder::kNetwork, false},
    Datatype{TypeName::kMark, "mark", 19, 4, ByteOrder::kHost, false},
    Datatype{TypeName::kInterfaceName, "ifname", 41, kInterfaceName, ByteOrder::kHost, false},
    Datatype{TypeName::kInteger, "integer", 4, 4, ByteOrder::kHost, false},
    Datatype{TypeName::kCtState, "ct_state", 26, 4, ByteOrder::kHost, true},
    Datatype{TypeName::kCtDirection, "ct_dir", 27, 1, ByteOrder::kHost, false},
    Datatype{TypeName::kCtStatus, "ct_status", 28, 4, ByteOrder::kHost, true},
    Datatype{TypeName::kFibType, "fib_addrtype", 38, 4, ByteOrder::kHost, false},
    Datatype{TypeName::kNfProtocol, "nf_proto", 2, 1, ByteOrder::kNone, false},
    Datatype{TypeName::kTcpFlags, "tcp_flag", 15, 1, ByteOrder::kNetwork, true},
};

struct Symbol {
  const char* name;
  std::uint32_t value;
};

constexpr std::array kProtocols{
    Symbol{"tcp", 6}, Symbol{"udp", 17}, Symbol{"sctp", 132}, Symbol{"icmp", 1}, Symbol{"ipv6-icmp", 58},
};

// The kernel's ct expression gives 1 << (state % IP_CT_IS_REPLY + 1), and these bits for what has no connection.
constexpr std::array kStates{
    Symbol{"invalid", 1}, Symbol{"established", 2}, Symbol{"related", 4}, Symbol{"new", 8}, Symbol{"untracked", 64},
};

constexpr std::array kStatuses{
    Symbol{"expected", IPS_EXPECTED}, Symbol{"seen-reply", IPS_SEEN_REPLY}, Symbol{"assured", IPS_ASSURED},
    Symbol{"confirmed", IPS_CONFIRMED}, Symbol{"snat", IPS_SRC_NAT}, Symbol{"dnat", IPS_DST_NAT},
    Symbol{"dying", IPS_DYING},
};

constexpr std::array kCtDirections{Symbol{"original", IP_CT_DIR_ORIGINAL}, Symbol{"reply", IP_CT_DIR_REPLY}};

constexpr std::array kAddressTypes{
    Symbol{"unspec", RTN_UNSPEC}, Symbol{"unicast", RTN_UNICAST}, Symbol{"local", RTN_LOCAL},
    Symbol{"broadcast", RTN_BROADCAST}, Symbol{"anycast", RTN_ANYCAST}, Symbol{"multicast", RTN_MULTICAST},
    Symbol{"blackhole", RTN_BLACKHOLE}, Symbol{"unreachable", RTN_UNREACHABLE}, Symbol{"prohibit", RTN_PROHIBIT},
};

// RFC 9293, section 3.1.
constexpr std::array kTcpFlags{Symbol{"fin", 1}, Symbol{"syn", 2}, Symbol{"rst", 4}, Symbol{"ack", 16}};

constexpr std::array kNfProtocols{Symbol{"ipv4", 2}, Symbol{"ipv6", 10}};

std::span<const Symbol> symbols_of(TypeName type) {
  switch (type) {
    case TypeName::kInetProtocol:
      return kProtocols;
    case TypeName::kCtState:
      return kStates;
    case TypeName::kCtDirection:
      return kCtDirections;
    case TypeName::kCtStatus:
      return kStatuses;
    case TypeName::kFibType:
      return kAddressTypes;
    case TypeName::kNfProtocol:
      return kNfProtocols;
    case TypeName::kTcpFlags:
      return kTcpFlags;
    default:
      return {};
  }
}

std::optional<std::uint32_t> number_of(const Datatype& type, ByteView value) {
  if (value.size() != type.length) return std::nullopt;
  if (type.length == 1) return value[0];
  if (type.length == 2) return netlink::load_be16(value.data());
  if (type.length != 4) return std::nullopt;
  return type.order == ByteOrder::kHost ? netlink::load_host32(value.data()) : netlink::load_be32(value.data());
}

Bytes address(int family, std::size_t length, std::string_view text) {
  Bytes bytes(length);
  if (inet_pton(family, std::string(text).c_str(), bytes.data()) != 1) bytes.clear();
  return bytes;
}

}  // namespace

const Datatype& datatype(TypeName type) {
  return *std::find_if(kDatatypes.begin(), kDatatypes.end(), [type](const Datatype& each) { return each.type == type; });
}

const Datatype* declared_type(std::string_view name) {
  const auto end = std::find_if(kDatatypes.begin(), kDatatypes.end(),
                                [](const Datatype& each) { return each.type == TypeName::kCtState; });
  const auto found = std::find_if(kDatatypes.begin(), end, [name](const Datatype& each) { return each.name == name; });
  return found == end ? nullptr : &*found;
}

const Datatype* type_of_id(std::uint32_t id) {
  const auto found =
      std::find_if(kDatatypes.begin(), kDatatypes.end(), [id](const Datatype& each) { return each.id == id; });
  return found == kDatatypes.end() ? nullptr : &*found;
}

std::optional<std::vector<const Datatype*>> components_of(std::uint32_t id) {
  std::vector<const Datatype*> components;
  for (; id != 0; id >>= kTypeBits) {
    const Datatype* component = type_of_id(id & kTypeMask);
    if (component == nullptr) return std::nullopt;
    components.insert(components.begin(), component);
  }
  if (components.empty()) return std::nullopt;
  return components;
}

std::string type_text(std::uint32_t id) {
  const auto components = components_of(id);
  if (!components) {
    Bytes bytes(sizeof id);
    netlink::store_be32(bytes.data(), id);
    return "type " + hex_text(bytes);
  }
  std::string text;
  for (const Datatype* component : *components) text += (text.empty() ? "" : " . ") + std::string(component->name);
  return text;
}

std::optional<Bytes> number_constant(const Datatype& type, std::int64_t number) {
  if (type.length > 4 || type.type == TypeName::kIpv4Address) return std::nullopt;
  if (number < 0 || number > (std::int64_t{1} << (8 * type.length)) - 1) return std::nullopt;
  Bytes bytes(type.length);
  const auto value = static_cast<std::uint32_t>(number);
  if (type.length == 1) bytes[0] = static_cast<std::uint8_t>(value);
  if (type.length == 2) netlink::store_be16(bytes.data(), static_cast<std::uint16_t>(value));
  if (type.length == 4 && type.order == ByteOrder::kHost) netlink::store_host32(bytes.data(), value);
  if (type.length == 4 && type.order != ByteOrder::kHost) netlink::store_be32(bytes.data(), value);
  return bytes;
}

std::optional<Bytes> parse_constant(const Datatype& type, std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return std::nullopt;
  if (type.type == TypeName::kInterfaceName) {
    if (text.empty() || text.size() >= kInterfaceName) return std::nullopt;
    Bytes bytes(text.begin(), text.end());
    bytes.resize(kInterfaceName);
    return bytes;
  }
  if (type.type == TypeName::kIpv4Address || type.type == TypeName::kIpv6Address) {
    Bytes bytes = address(type.length == 4 ? AF_INET : AF_INET6, type.length, text);
    if (bytes.empty()) return std::nullopt;
    return bytes;
  }
  for (const Symbol& symbol : symbols_of(type.type)) {
    if (symbol.name == text) return number_constant(type, symbol.value);
  }
  return std::nullopt;
}

std::string value_text(const Datatype& type, ByteView value) {
  if (value.size() != type.length) return hex_text(value);
  if (type.type == TypeName::kIpv4Address || type.type == TypeName::kIpv6Address) return netlink::print_address(value);
  if (type.type == TypeName::kInterfaceName) {
    return std::string(value.begin(), std::find(value.begin(), value.end(), std::uint8_t{0}));
  }
  const auto number = number_of(type, value);
  if (!number) return hex_text(value);
  for (const Symbol& symbol : symbols_of(type.type)) {
    if (symbol.value == *number) return symbol.name;
  }
  return std::to_string(*number);
}

std::string key_text(std::uint32_t type_id, ByteView key) {
  const auto components = components_of(type_id);
  if (!components) return hex_text(key);
  if (components->size() == 1) return value_text(*components->front(), key);
  std::size_t length = 0;
  for (const Datatype* component : *components) length += netlink::align4(component->length);
  if (length != key.size()) return hex_text(key);
  std::string text;
  for (const Datatype* component : *components) {
    if (!text.empty()) text += " . ";
    text += value_text(*component, key.first(component->length));
    key = key.subspan(netlink::align4(component->length));
  }
  return text;
}

std::string hex_text(ByteView bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "0x";
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace pointsman::nftables
