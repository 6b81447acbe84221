#include "ipvs/services.h"

#include <linux/genetlink.h>
#include <linux/ip_vs.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "netlink/attribute_reader.h"
#include "netlink/message_writer.h"

namespace pointsman::ipvs {

namespace {

using netlink::Attribute;
using netlink::AttributeReader;
using netlink::Bytes;
using netlink::ByteView;
using netlink::Done;
using netlink::Message;
using netlink::MessageWriter;
using netlink::Result;
using netlink::Socket;
using netlink::Status;

/// There while ip_vs is loaded.
constexpr const char* kServices = "/proc/net/ip_vs";

bool is_loaded() { return access(kServices, F_OK) == 0; }

/// genlmsghdr has the size of nfgenmsg, and its command stands where the other has its family.
void begin_command(MessageWriter& writer, std::uint16_t type, std::uint16_t flags, std::uint32_t sequence, std::uint8_t command) {
  writer.begin_message(type, static_cast<std::uint16_t>(NLM_F_REQUEST | flags), sequence, command);
}

void put_host16(MessageWriter& writer, std::uint16_t type, std::uint16_t value) {
  std::array<std::uint8_t, 2> bytes{};
  netlink::store_host16(bytes.data(), value);
  writer.put_bytes(type, bytes);
}

void put_service(MessageWriter& writer, const Service& service) {
  writer.nest(IPVS_CMD_ATTR_SERVICE, [&] {
    put_host16(writer, IPVS_SVC_ATTR_AF, service.family);
    if (service.mark != 0) {
      writer.put_host32(IPVS_SVC_ATTR_FWMARK, service.mark);
      return;
    }
    // union nf_inet_addr.
    Bytes address = service.address;
    address.resize(16);
    put_host16(writer, IPVS_SVC_ATTR_PROTOCOL, service.protocol);
    writer.put_bytes(IPVS_SVC_ATTR_ADDR, address);
    writer.put_be16(IPVS_SVC_ATTR_PORT, service.port);
  });
}

std::optional<std::uint16_t> host16(const Attribute& attribute) {
  if (attribute.payload.size() < 2) return {};
  return netlink::load_host16(attribute.payload.data());
}

/// The attributes within the nest of that type.
Result<ByteView> nested(const Message& message, std::uint16_t type) {
  AttributeReader reader(message.attributes());
  while (const auto attribute = reader.next()) {
    if (attribute->type == type) return attribute->payload;
  }
  return netlink::decode_error("an answer of ip_vs without its object");
}

Result<std::uint16_t> family_type(Socket& socket) {
  std::optional<std::uint16_t> type;
  const auto answered = socket.request(encode_family_request(1), [&](const Message& message) -> Status {
    const auto decoded = decode_family(message);
    if (!decoded.ok()) return decoded.error();
    type = decoded.value();
    return Done{};
  });
  if (!answered.ok()) return answered.error();
  if (!type) return netlink::decode_error("no number for the family IPVS");
  return *type;
}

Result<std::uint64_t> count_connections(Socket& socket, std::uint16_t type, const Service& service) {
  std::uint64_t count = 0;
  const auto dumped = socket.dump_consistent(encode_destinations(type, 3, service), [&] { count = 0; }, [&](const Message& message) -> Status {
    const auto connections = decode_connections(message);
    if (!connections.ok()) return connections.error();
    count += connections.value();
    return Done{};
  });
  if (!dumped.ok()) return dumped.error();
  return count;
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
    const auto number = host16(*attribute);
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

Result<Service> decode_service(const Message& message) {
  const auto attributes = nested(message, IPVS_CMD_ATTR_SERVICE);
  if (!attributes.ok()) return attributes.error();
  Service service;
  ByteView address;
  AttributeReader reader(attributes.value());
  while (const auto attribute = reader.next()) {
    if (attribute->type == IPVS_SVC_ATTR_AF) service.family = host16(*attribute).value_or(0);
    if (attribute->type == IPVS_SVC_ATTR_PROTOCOL) service.protocol = host16(*attribute).value_or(0);
    if (attribute->type == IPVS_SVC_ATTR_ADDR) address = attribute->payload;
    if (attribute->type == IPVS_SVC_ATTR_PORT) service.port = attribute->be16().value_or(0);
    if (attribute->type == IPVS_SVC_ATTR_FWMARK) service.mark = attribute->host32().value_or(0);
  }
  if (service.family != AF_INET && service.family != AF_INET6) return netlink::decode_error("a virtual service of neither family");
  if (service.mark != 0) return service;
  const std::size_t length = service.family == AF_INET ? 4 : 16;
  if (address.size() < length) return netlink::decode_error("a virtual service without an address");
  service.address.assign(address.begin(), address.begin() + static_cast<std::ptrdiff_t>(length));
  return service;
}

Bytes encode_destinations(std::uint16_t type, std::uint32_t sequence, const Service& service) {
  MessageWriter writer;
  begin_command(writer, type, NLM_F_DUMP, sequence, IPVS_CMD_GET_DEST);
  put_service(writer, service);
  writer.end_message();
  return writer.take();
}

Result<std::uint64_t> decode_connections(const Message& message) {
  const auto attributes = nested(message, IPVS_CMD_ATTR_DEST);
  if (!attributes.ok()) return attributes.error();
  std::uint64_t count = 0;
  AttributeReader reader(attributes.value());
  while (const auto attribute = reader.next()) {
    const bool counts = attribute->type == IPVS_DEST_ATTR_ACTIVE_CONNS || attribute->type == IPVS_DEST_ATTR_INACT_CONNS;
    if (counts) count += attribute->host32().value_or(0);
  }
  return count;
}

Bytes encode_delete(std::uint16_t type, std::uint32_t sequence, const Service& service) {
  MessageWriter writer;
  begin_command(writer, type, NLM_F_ACK, sequence, IPVS_CMD_DEL_SERVICE);
  put_service(writer, service);
  writer.end_message();
  return writer.take();
}

Result<std::vector<ListedService>> list_services() {
  std::vector<ListedService> services;
  if (!is_loaded()) return services;
  auto socket = Socket::open(NETLINK_GENERIC);
  if (!socket.ok()) return socket.error();
  const auto type = family_type(socket.value());
  if (!type.ok()) return type.error();
  const auto dumped =
      socket.value().dump_consistent(encode_list(type.value(), 2), [&] { services.clear(); }, [&](const Message& message) -> Status {
        auto service = decode_service(message);
        if (!service.ok()) return service.error();
        services.push_back({std::move(service.value()), 0});
        return Done{};
      });
  if (!dumped.ok()) return dumped.error();
  for (ListedService& listed : services) {
    const auto connections = count_connections(socket.value(), type.value(), listed.service);
    if (!connections.ok()) return connections.error();
    listed.connections = connections.value();
  }
  return services;
}

Result<bool> delete_service(const Service& service) {
  if (!is_loaded()) return false;
  auto socket = Socket::open(NETLINK_GENERIC);
  if (!socket.ok()) return socket.error();
  const auto type = family_type(socket.value());
  if (!type.ok()) return type.error();
  const auto answered =
      socket.value().request(encode_delete(type.value(), 2, service), [](const Message&) -> Status { return Done{}; });
  if (answered.ok()) return true;
  // ESRCH: it is gone.
  if (answered.error().code == ESRCH) return false;
  return answered.error();
}

}  // namespace pointsman::ipvs
