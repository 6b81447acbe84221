#include "route/link.h"

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include <cerrno>
#include <cstring>

#include "netlink/attribute_reader.h"

namespace pointsman::route {

namespace {

using netlink::Bytes;
using netlink::ByteView;
using netlink::Done;
using netlink::Message;
using netlink::Result;
using netlink::Socket;
using netlink::Status;

template <typename Header>
void append(Bytes& bytes, const Header& header) {
  const auto* start = reinterpret_cast<const std::uint8_t*>(&header);
  bytes.insert(bytes.end(), start, start + sizeof header);
  bytes.resize(netlink::align4(bytes.size()));
}

/// A message of rtnetlink: nlmsghdr, the family's own header, and attributes that are already encoded.
template <typename Header>
Bytes message(std::uint16_t type, std::uint16_t flags, std::uint32_t sequence, const Header& header, ByteView attributes) {
  Bytes bytes;
  nlmsghdr start{};
  start.nlmsg_len = static_cast<std::uint32_t>(sizeof start + netlink::align4(sizeof header) + attributes.size());
  start.nlmsg_type = type;
  start.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  start.nlmsg_seq = sequence;
  append(bytes, start);
  append(bytes, header);
  bytes.insert(bytes.end(), attributes.begin(), attributes.end());
  return bytes;
}

}  // namespace

Bytes encode_addresses(std::uint32_t sequence) { return message(RTM_GETADDR, NLM_F_DUMP, sequence, ifaddrmsg{}, {}); }

Bytes encode_delete_link(std::uint32_t sequence, const std::string& name) {
  Bytes attributes;
  const rtattr header{static_cast<std::uint16_t>(sizeof(rtattr) + name.size() + 1), IFLA_IFNAME};
  append(attributes, header);
  attributes.insert(attributes.end(), name.begin(), name.end());
  attributes.push_back(0);
  attributes.resize(netlink::align4(attributes.size()));
  return message(RTM_DELLINK, NLM_F_ACK, sequence, ifinfomsg{}, attributes);
}

Result<Bytes> decode_address(const Message& message, std::uint32_t link) {
  ifaddrmsg header{};
  if (message.payload.size() < sizeof header) return netlink::decode_error("an address without its header");
  std::memcpy(&header, message.payload.data(), sizeof header);
  if (header.ifa_index != link) return Bytes{};
  netlink::AttributeReader reader(message.payload.subspan(sizeof header));
  Bytes address;
  while (const auto attribute = reader.next()) {
    // Of a point-to-point link IFA_ADDRESS is the other end's; IPv6 has no IFA_LOCAL elsewhere.
    const bool local = attribute->type == IFA_LOCAL;
    if (local || (attribute->type == IFA_ADDRESS && address.empty())) {
      address.assign(attribute->payload.begin(), attribute->payload.end());
    }
    if (local) break;
  }
  if (address.size() != 4 && address.size() != 16) return netlink::decode_error("an address of neither family");
  return address;
}

Result<std::optional<std::vector<Bytes>>> link_addresses(const std::string& name) {
  using Answer = std::optional<std::vector<Bytes>>;
  const std::uint32_t link = if_nametoindex(name.c_str());
  if (link == 0) return errno == ENODEV ? Result<Answer>(Answer{}) : Result<Answer>(netlink::system_error(errno, name));
  auto socket = Socket::open(NETLINK_ROUTE);
  if (!socket.ok()) return socket.error();
  std::vector<Bytes> addresses;
  const auto dumped =
      socket.value().dump_consistent(encode_addresses(1), [&] { addresses.clear(); }, [&](const Message& answer) -> Status {
        auto address = decode_address(answer, link);
        if (!address.ok()) return address.error();
        if (!address.value().empty()) addresses.push_back(std::move(address.value()));
        return Done{};
      });
  if (!dumped.ok()) return dumped.error();
  return Answer(std::move(addresses));
}

Result<bool> delete_link(const std::string& name) {
  auto socket = Socket::open(NETLINK_ROUTE);
  if (!socket.ok()) return socket.error();
  const auto answered = socket.value().request(encode_delete_link(1, name), [](const Message&) -> Status { return Done{}; });
  if (answered.ok()) return true;
  if (answered.error().code == ENODEV) return false;
  return answered.error();
}

}  // namespace pointsman::route
