#pragma once

#include <array>
#include <optional>
#include <string>

#include "netlink/answer.h"
#include "netlink/message_writer.h"

namespace pointsman::route {

/// An address and the index of the link that has it.
struct LinkAddress {
  std::uint32_t link = 0;
  /// 4 or 16 bytes, network order.
  netlink::Bytes address;
};

/// A request for all addresses (NLM_F_DUMP).
netlink::Bytes encode_addresses(std::uint32_t sequence);
/// The content of an answer to it, or of a notification; the link's own address where it is one end of two.
netlink::Result<LinkAddress> decode_address(const netlink::Message& message);

// With NLM_F_ACK.
netlink::Bytes encode_new_dummy(std::uint32_t sequence, const std::string& name);
netlink::Bytes encode_delete_link(std::uint32_t sequence, const std::string& name);
/// A link as a port of a bridge.
struct BridgePort {
  std::uint32_t bridge = 0;
  /// A bridge takes the smallest of its ports.
  std::uint32_t mtu = 0;
  /// A bridge takes the lowest of its ports.
  std::array<std::uint8_t, 6> hardware_address{};
};
/// A pair of links that are one wire: `name` here, `peer` in the network namespace that a descriptor stands for.
netlink::Bytes encode_new_veth(std::uint32_t sequence, const std::string& name, const std::string& peer, int space, const std::optional<BridgePort>& port);
netlink::Bytes encode_link_up(std::uint32_t sequence, std::uint32_t link);
/// With the route to all that its prefix covers.
netlink::Bytes encode_new_address(std::uint32_t sequence, std::uint32_t link, netlink::ByteView address, std::uint8_t prefix);
/// The same for some seconds, after which the kernel removes it; 0: it goes now.
netlink::Bytes encode_leased_address(std::uint32_t sequence, std::uint32_t link, netlink::ByteView address, std::uint8_t prefix, std::uint32_t seconds);
netlink::Bytes encode_default_route(std::uint32_t sequence, std::uint32_t link, netlink::ByteView gateway);
/// One that stands for itself alone, /32 or /128.
void encode_address(netlink::MessageWriter& writer, std::uint32_t sequence, bool add, std::uint32_t link, netlink::ByteView address);

/// The name of the link in a notification; nothing where it has none.
std::optional<std::string> decode_link_name(const netlink::Message& message);

}  // namespace pointsman::route
