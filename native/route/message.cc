#include "route/message.h"

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "netlink/attribute_reader.h"

namespace pointsman::route {

namespace {

using netlink::Bytes;
using netlink::ByteView;
using netlink::Message;
using netlink::MessageWriter;
using netlink::Result;

/// Opens a message of rtnetlink, whose header is that of its own kind of object.
template <typename Header>
void begin(MessageWriter& writer, std::uint16_t type, std::uint16_t flags, std::uint32_t sequence, const Header& header) {
  std::array<std::uint8_t, sizeof header> bytes{};
  static_assert(netlink::align4(sizeof header) == sizeof header);
  std::memcpy(bytes.data(), &header, sizeof header);
  writer.begin_message(type, static_cast<std::uint16_t>(NLM_F_REQUEST | flags), sequence, bytes);
}

/// Opens a message about an address of a link.
void begin_address(MessageWriter& writer, std::uint16_t type, std::uint16_t flags, std::uint32_t sequence, std::uint32_t link, ByteView address,
                   std::uint8_t prefix) {
  const bool wide = address.size() == 16;
  ifaddrmsg header{};
  header.ifa_family = wide ? AF_INET6 : AF_INET;
  header.ifa_prefixlen = prefix;
  // On a link that is down, duplicate address detection would get no answer, and the address is not in use before that.
  if (wide) header.ifa_flags = IFA_F_NODAD;
  header.ifa_index = link;
  begin(writer, type, static_cast<std::uint16_t>(NLM_F_ACK | flags), sequence, header);
  writer.put_bytes(IFA_LOCAL, address);
  writer.put_bytes(IFA_ADDRESS, address);
}

}  // namespace

Bytes encode_addresses(std::uint32_t sequence) {
  MessageWriter writer;
  begin(writer, RTM_GETADDR, NLM_F_DUMP, sequence, ifaddrmsg{});
  writer.end_message();
  return writer.take();
}

Result<LinkAddress> decode_address(const Message& message) {
  ifaddrmsg header{};
  if (message.payload.size() < sizeof header) return netlink::decode_error("an address without its header");
  std::memcpy(&header, message.payload.data(), sizeof header);
  LinkAddress found{header.ifa_index, {}};
  netlink::AttributeReader reader(message.payload.subspan(sizeof header));
  while (const auto attribute = reader.next()) {
    // The IFA_ADDRESS of a point-to-point link is the other end's; IPv6 has no IFA_LOCAL elsewhere.
    const bool local = attribute->type == IFA_LOCAL;
    if (local || (attribute->type == IFA_ADDRESS && found.address.empty())) {
      found.address.assign(attribute->payload.begin(), attribute->payload.end());
    }
    if (local) break;
  }
  if (found.address.size() != 4 && found.address.size() != 16) return netlink::decode_error("an address of neither family");
  return found;
}

Bytes encode_new_dummy(std::uint32_t sequence, const std::string& name) {
  MessageWriter writer;
  begin(writer, RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, sequence, ifinfomsg{});
  writer.put_string(IFLA_IFNAME, name);
  writer.nest(IFLA_LINKINFO, [&] { writer.put_string(IFLA_INFO_KIND, "dummy"); });
  writer.end_message();
  return writer.take();
}

Bytes encode_delete_link(std::uint32_t sequence, const std::string& name) {
  MessageWriter writer;
  begin(writer, RTM_DELLINK, NLM_F_ACK, sequence, ifinfomsg{});
  writer.put_string(IFLA_IFNAME, name);
  writer.end_message();
  return writer.take();
}

Bytes encode_new_veth(std::uint32_t sequence, const std::string& name, const std::string& peer, int space, const std::optional<BridgePort>& port) {
  // The other end is described as in a message of its own.
  MessageWriter other;
  begin(other, RTM_NEWLINK, 0, sequence, ifinfomsg{});
  other.put_string(IFLA_IFNAME, peer);
  other.put_host32(IFLA_NET_NS_FD, static_cast<std::uint32_t>(space));
  other.end_message();
  MessageWriter writer;
  begin(writer, RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, sequence, ifinfomsg{});
  writer.put_string(IFLA_IFNAME, name);
  if (port) {
    writer.put_bytes(IFLA_ADDRESS, port->hardware_address);
    writer.put_host32(IFLA_MTU, port->mtu);
    writer.put_host32(IFLA_MASTER, port->bridge);
  }
  writer.nest(IFLA_LINKINFO, [&] {
    writer.put_string(IFLA_INFO_KIND, "veth");
    writer.nest(IFLA_INFO_DATA, [&] { writer.put_bytes(VETH_INFO_PEER, other.bytes().subspan(NLMSG_HDRLEN)); });
  });
  writer.end_message();
  return writer.take();
}

Bytes encode_link_up(std::uint32_t sequence, std::uint32_t link) {
  MessageWriter writer;
  ifinfomsg header{};
  header.ifi_index = static_cast<int>(link);
  header.ifi_flags = IFF_UP;
  header.ifi_change = IFF_UP;
  begin(writer, RTM_NEWLINK, NLM_F_ACK, sequence, header);
  writer.end_message();
  return writer.take();
}

Bytes encode_new_address(std::uint32_t sequence, std::uint32_t link, ByteView address, std::uint8_t prefix) {
  MessageWriter writer;
  begin_address(writer, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, sequence, link, address, prefix);
  writer.end_message();
  return writer.take();
}

Bytes encode_leased_address(std::uint32_t sequence, std::uint32_t link, ByteView address, std::uint8_t prefix, std::uint32_t seconds) {
  MessageWriter writer;
  if (seconds == 0) {
    begin_address(writer, RTM_DELADDR, 0, sequence, link, address, prefix);
  } else {
    begin_address(writer, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, sequence, link, address, prefix);
    // Deprecated from the start: packets of this machine take another address as their source.
    ifa_cacheinfo life{};
    life.ifa_valid = seconds;
    std::array<std::uint8_t, sizeof life> bytes{};
    std::memcpy(bytes.data(), &life, sizeof life);
    writer.put_bytes(IFA_CACHEINFO, bytes);
  }
  writer.end_message();
  return writer.take();
}

Bytes encode_default_route(std::uint32_t sequence, std::uint32_t link, ByteView gateway) {
  MessageWriter writer;
  rtmsg header{};
  header.rtm_family = gateway.size() == 16 ? AF_INET6 : AF_INET;
  header.rtm_table = RT_TABLE_MAIN;
  header.rtm_protocol = RTPROT_BOOT;
  header.rtm_scope = RT_SCOPE_UNIVERSE;
  header.rtm_type = RTN_UNICAST;
  begin(writer, RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE, sequence, header);
  writer.put_bytes(RTA_GATEWAY, gateway);
  writer.put_host32(RTA_OIF, link);
  writer.end_message();
  return writer.take();
}

void encode_address(MessageWriter& writer, std::uint32_t sequence, bool add, std::uint32_t link, ByteView address) {
  const auto prefix = static_cast<std::uint8_t>(address.size() * 8);
  if (add) {
    begin_address(writer, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, sequence, link, address, prefix);
  } else {
    begin_address(writer, RTM_DELADDR, 0, sequence, link, address, prefix);
  }
  writer.end_message();
}

std::optional<std::string> decode_link_name(const Message& message) {
  if (message.payload.size() < sizeof(ifinfomsg)) return std::nullopt;
  netlink::AttributeReader reader(message.payload.subspan(sizeof(ifinfomsg)));
  while (const auto attribute = reader.next()) {
    if (attribute->type == IFLA_IFNAME && !attribute->string().empty()) return std::string(attribute->string());
  }
  return std::nullopt;
}

}  // namespace pointsman::route
