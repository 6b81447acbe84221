#include "ipvs/message.h"

#include <linux/genetlink.h>
#include <linux/ip_vs.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>

#include "netlink/attribute_reader.h"
#include "netlink/text.h"

namespace pointsman::ipvs {

namespace {

using netlink::AttributeReader;
using netlink::Bytes;
using netlink::ByteView;
using netlink::Message;
using netlink::MessageWriter;
using netlink::Result;

/// union nf_inet_addr, which both families' addresses are sent in.
constexpr std::size_t kAddressField = 16;
constexpr std::uint32_t kBits = 32;

std::size_t address_length(std::uint16_t family) { return family == AF_INET ? 4 : 16; }

/// genlmsghdr has the size of nfgenmsg, and its command stands where the other has its family.
void begin_command(MessageWriter& writer, std::uint16_t type, std::uint16_t flags, std::uint32_t sequence, int command) {
  writer.begin_message(type, static_cast<std::uint16_t>(NLM_F_REQUEST | flags), sequence, static_cast<std::uint8_t>(command));
}

void put_address(MessageWriter& writer, std::uint16_t type, ByteView address) {
  std::array<std::uint8_t, kAddressField> field{};
  std::copy_n(address.begin(), std::min(address.size(), field.size()), field.begin());
  writer.put_bytes(type, field);
}

void put_identity(MessageWriter& writer, const Service& service) {
  writer.put_host16(IPVS_SVC_ATTR_AF, service.family);
  if (service.mark != 0) return writer.put_host32(IPVS_SVC_ATTR_FWMARK, service.mark);
  writer.put_host16(IPVS_SVC_ATTR_PROTOCOL, service.protocol);
  put_address(writer, IPVS_SVC_ATTR_ADDR, service.address);
  writer.put_be16(IPVS_SVC_ATTR_PORT, service.port);
}

/// IPv4's is a mask in network order, IPv6's a length in host order.
void put_prefix(MessageWriter& writer, const Service& service, std::uint32_t length) {
  if (service.family == AF_INET6) return writer.put_host32(IPVS_SVC_ATTR_NETMASK, length);
  writer.put_be32(IPVS_SVC_ATTR_NETMASK, length == 0 ? 0 : ~std::uint32_t{0} << (kBits - length));
}

void put_state(MessageWriter& writer, const Service& service, const ServiceState& state) {
  writer.put_string(IPVS_SVC_ATTR_SCHED_NAME, state.scheduler);
  // struct ip_vs_flags: the flags, and which of them count.
  std::array<std::uint8_t, sizeof(ip_vs_flags)> flags{};
  netlink::store_host32(flags.data() + offsetof(ip_vs_flags, flags), state.flags);
  netlink::store_host32(flags.data() + offsetof(ip_vs_flags, mask), ~std::uint32_t{0});
  writer.put_bytes(IPVS_SVC_ATTR_FLAGS, flags);
  writer.put_host32(IPVS_SVC_ATTR_TIMEOUT, state.timeout);
  put_prefix(writer, service, state.prefix_length);
}

/// The attributes within the nest of that type.
Result<ByteView> nested(const Message& message, std::uint16_t type) {
  AttributeReader reader(message.attributes());
  while (const auto attribute = reader.next()) {
    if (attribute->type == type) return attribute->payload;
  }
  return netlink::decode_error("an answer of ip_vs without its object");
}

void read_state(const netlink::Attribute& attribute, ListedService& listed) {
  ServiceState& state = listed.state;
  if (attribute.type == IPVS_SVC_ATTR_SCHED_NAME) state.scheduler = attribute.string();
  if (attribute.type == IPVS_SVC_ATTR_FLAGS) state.flags = attribute.host32().value_or(0) & ~std::uint32_t{IP_VS_SVC_F_HASHED};
  if (attribute.type == IPVS_SVC_ATTR_TIMEOUT) state.timeout = attribute.host32().value_or(0);
}

}  // namespace

Bytes encode_family_request(std::uint32_t sequence) {
  MessageWriter writer;
  begin_command(writer, GENL_ID_CTRL, NLM_F_ACK, sequence, CTRL_CMD_GETFAMILY);
  writer.put_string(CTRL_ATTR_FAMILY_NAME, IPVS_GENL_NAME);
  writer.end_message();
  return writer.take();
}

Result<std::uint16_t> decode_family(const Message& message) {
  AttributeReader reader(message.attributes());
  while (const auto attribute = reader.next()) {
    const auto number = attribute->host16();
    if (attribute->type == CTRL_ATTR_FAMILY_ID && number) return *number;
  }
  return netlink::decode_error("no number for the family IPVS");
}

Bytes encode_list(std::uint16_t type, std::uint32_t sequence) {
  MessageWriter writer;
  begin_command(writer, type, NLM_F_DUMP, sequence, IPVS_CMD_GET_SERVICE);
  writer.end_message();
  return writer.take();
}

Bytes encode_destinations(std::uint16_t type, std::uint32_t sequence, const Service& service) {
  MessageWriter writer;
  begin_command(writer, type, NLM_F_DUMP, sequence, IPVS_CMD_GET_DEST);
  writer.nest(IPVS_CMD_ATTR_SERVICE, [&] { put_identity(writer, service); });
  writer.end_message();
  return writer.take();
}

Result<ListedService> decode_service(const Message& message) {
  const auto attributes = nested(message, IPVS_CMD_ATTR_SERVICE);
  if (!attributes.ok()) return attributes.error();
  ListedService listed;
  Service& service = listed.service;
  ByteView address;
  netlink::Attribute mask;
  AttributeReader reader(attributes.value());
  while (const auto attribute = reader.next()) {
    if (attribute->type == IPVS_SVC_ATTR_AF) service.family = attribute->host16().value_or(0);
    if (attribute->type == IPVS_SVC_ATTR_PROTOCOL) service.protocol = attribute->host16().value_or(0);
    if (attribute->type == IPVS_SVC_ATTR_ADDR) address = attribute->payload;
    if (attribute->type == IPVS_SVC_ATTR_PORT) service.port = attribute->be16().value_or(0);
    if (attribute->type == IPVS_SVC_ATTR_FWMARK) service.mark = attribute->host32().value_or(0);
    if (attribute->type == IPVS_SVC_ATTR_NETMASK) mask = *attribute;
    read_state(*attribute, listed);
  }
  if (service.family != AF_INET && service.family != AF_INET6) return netlink::decode_error("a virtual service of neither family");
  const bool wide = service.family == AF_INET6;
  listed.state.prefix_length = wide ? mask.host32().value_or(0) : static_cast<std::uint32_t>(std::popcount(mask.be32().value_or(0)));
  if (service.mark != 0) return listed;
  const std::size_t length = address_length(service.family);
  if (address.size() < length) return netlink::decode_error("a virtual service without an address");
  address = address.first(length);
  service.address.assign(address.begin(), address.end());
  return listed;
}

Result<Destination> decode_destination(const Message& message, std::uint16_t family) {
  const auto attributes = nested(message, IPVS_CMD_ATTR_DEST);
  if (!attributes.ok()) return attributes.error();
  Destination destination;
  ByteView address;
  // Kernels before 3.18 do not report it, nor have destinations of another.
  std::uint16_t own_family = family;
  AttributeReader reader(attributes.value());
  while (const auto attribute = reader.next()) {
    const std::uint32_t value = attribute->host32().value_or(0);
    if (attribute->type == IPVS_DEST_ATTR_ADDR) address = attribute->payload;
    if (attribute->type == IPVS_DEST_ATTR_PORT) destination.port = attribute->be16().value_or(0);
    if (attribute->type == IPVS_DEST_ATTR_FWD_METHOD) destination.method = value;
    if (attribute->type == IPVS_DEST_ATTR_WEIGHT) destination.weight = value;
    if (attribute->type == IPVS_DEST_ATTR_ACTIVE_CONNS || attribute->type == IPVS_DEST_ATTR_INACT_CONNS) destination.connections += value;
    if (attribute->type == IPVS_DEST_ATTR_U_THRESH) destination.most = value;
    if (attribute->type == IPVS_DEST_ATTR_L_THRESH) destination.least = value;
    if (attribute->type == IPVS_DEST_ATTR_ADDR_FAMILY) own_family = attribute->host16().value_or(0);
  }
  if (own_family != family) return destination;
  const std::size_t length = address_length(family);
  if (address.size() < length) return netlink::decode_error("a destination without an address");
  address = address.first(length);
  destination.address.assign(address.begin(), address.end());
  return destination;
}

void encode_service(MessageWriter& writer, std::uint16_t type, std::uint32_t sequence, Verb verb, const Service& service,
                    const ServiceState& state) {
  static_assert(IPVS_CMD_NEW_SERVICE + 1 == IPVS_CMD_SET_SERVICE && IPVS_CMD_NEW_SERVICE + 2 == IPVS_CMD_DEL_SERVICE);
  begin_command(writer, type, NLM_F_ACK, sequence, IPVS_CMD_NEW_SERVICE + static_cast<int>(verb));
  writer.nest(IPVS_CMD_ATTR_SERVICE, [&] {
    put_identity(writer, service);
    if (verb != Verb::kDelete) put_state(writer, service, state);
  });
  writer.end_message();
}

void encode_destination(MessageWriter& writer, std::uint16_t type, std::uint32_t sequence, Verb verb, const Service& service,
                        ByteView endpoint, std::uint32_t weight) {
  static_assert(IPVS_CMD_NEW_DEST + 1 == IPVS_CMD_SET_DEST && IPVS_CMD_NEW_DEST + 2 == IPVS_CMD_DEL_DEST);
  begin_command(writer, type, NLM_F_ACK, sequence, IPVS_CMD_NEW_DEST + static_cast<int>(verb));
  writer.nest(IPVS_CMD_ATTR_SERVICE, [&] { put_identity(writer, service); });
  writer.nest(IPVS_CMD_ATTR_DEST, [&] {
    const ByteView address = endpoint.first(endpoint.size() - sizeof(std::uint16_t));
    put_address(writer, IPVS_DEST_ATTR_ADDR, address);
    writer.put_bytes(IPVS_DEST_ATTR_PORT, endpoint.last(sizeof(std::uint16_t)));
    writer.put_host16(IPVS_DEST_ATTR_ADDR_FAMILY, service.family);
    if (verb == Verb::kDelete) return;
    writer.put_host32(IPVS_DEST_ATTR_FWD_METHOD, IP_VS_CONN_F_MASQ);
    writer.put_host32(IPVS_DEST_ATTR_WEIGHT, weight);
    // Without bounds on connections.
    writer.put_host32(IPVS_DEST_ATTR_U_THRESH, 0);
    writer.put_host32(IPVS_DEST_ATTR_L_THRESH, 0);
  });
  writer.end_message();
}

Bytes encode_get_timeouts(std::uint16_t type, std::uint32_t sequence) {
  MessageWriter writer;
  begin_command(writer, type, NLM_F_ACK, sequence, IPVS_CMD_GET_CONFIG);
  writer.end_message();
  return writer.take();
}

Bytes encode_set_timeouts(std::uint16_t type, std::uint32_t sequence, const Timeouts& timeouts) {
  MessageWriter writer;
  begin_command(writer, type, NLM_F_ACK, sequence, IPVS_CMD_SET_CONFIG);
  writer.put_host32(IPVS_CMD_ATTR_TIMEOUT_TCP, timeouts.tcp);
  writer.put_host32(IPVS_CMD_ATTR_TIMEOUT_TCP_FIN, timeouts.tcp_fin);
  writer.put_host32(IPVS_CMD_ATTR_TIMEOUT_UDP, timeouts.udp);
  writer.end_message();
  return writer.take();
}

Result<Timeouts> decode_timeouts(const Message& message) {
  std::optional<std::uint32_t> tcp;
  std::optional<std::uint32_t> tcp_fin;
  // Each is reported where the kernel has the protocol.
  std::uint32_t udp = 0;
  AttributeReader reader(message.attributes());
  while (const auto attribute = reader.next()) {
    if (attribute->type == IPVS_CMD_ATTR_TIMEOUT_TCP) tcp = attribute->host32();
    if (attribute->type == IPVS_CMD_ATTR_TIMEOUT_TCP_FIN) tcp_fin = attribute->host32();
    if (attribute->type == IPVS_CMD_ATTR_TIMEOUT_UDP) udp = attribute->host32().value_or(0);
  }
  if (!tcp || !tcp_fin) return netlink::decode_error("no timeouts of ip_vs");
  return Timeouts{*tcp, *tcp_fin, udp};
}

std::string describe(const Service& service) {
  if (service.mark != 0) return "mark " + std::to_string(service.mark);
  return netlink::print_protocol(service.protocol) + " " + netlink::print_endpoint(service.address, service.port);
}

}  // namespace pointsman::ipvs
