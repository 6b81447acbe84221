#include "conntrack/flow.h"

#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "netlink/attribute_reader.h"
#include "netlink/digest.h"
#include "netlink/text.h"

namespace pointsman::conntrack {

namespace {

using netlink::Attribute;
using netlink::AttributeReader;
using netlink::Bytes;
using netlink::ByteView;
using netlink::decode_error;
using netlink::Done;
using netlink::Message;
using netlink::MessageWriter;
using netlink::Status;

// Bits of CTA_FILTER_ORIG_FLAGS: which parts of CTA_TUPLE_ORIG must match. Part of the protocol since Linux 5.9, but in no UAPI header. Of
// CTA_FILTER_REPLY_FLAGS and CTA_TUPLE_REPLY they are the same.
constexpr std::uint32_t kMatchSource = 1U << 0;
constexpr std::uint32_t kMatchDestination = 1U << 1;
constexpr std::uint32_t kMatchProtocol = 1U << 3;
constexpr std::uint32_t kMatchDestinationPort = 1U << 5;

/// The kernel's comparison of IPv6 addresses is inverted, from the filter's introduction in Linux 5.9 to 6.18 at least: it leaves out the
/// flows asked for and answers all others.
constexpr bool kernel_matches_addresses(Family family) { return family == Family::kIPv4; }

constexpr std::uint16_t message_type(std::uint8_t message) {
  return static_cast<std::uint16_t>(NFNL_SUBSYS_CTNETLINK << 8 | message);
}

constexpr std::uint16_t source_attribute(Family family) {
  return family == Family::kIPv4 ? CTA_IP_V4_SRC : CTA_IP_V6_SRC;
}

constexpr std::uint16_t destination_attribute(Family family) {
  return family == Family::kIPv4 ? CTA_IP_V4_DST : CTA_IP_V6_DST;
}

/// Offsets in a record; `tail` is where the addresses end.
struct Layout {
  std::size_t address;
  std::size_t tail;

  explicit constexpr Layout(Family family) : address(address_length(family)), tail(4 * address) {}
  constexpr std::size_t original_source() const { return 0; }
  constexpr std::size_t original_destination() const { return address; }
  constexpr std::size_t reply_source() const { return 2 * address; }
  constexpr std::size_t original_source_port() const { return tail; }
  constexpr std::size_t original_destination_port() const { return tail + 2; }
  constexpr std::size_t reply_source_port() const { return tail + 4; }
  constexpr std::size_t zone() const { return tail + 8; }
  constexpr std::size_t protocol() const { return tail + 10; }
  constexpr std::size_t id() const { return tail + 12; }
};

/// The content of a tuple; absent parts stay empty.
struct Tuple {
  ByteView source;
  ByteView destination;
  std::optional<std::uint8_t> protocol;
  std::optional<std::uint16_t> source_port;
  std::optional<std::uint16_t> destination_port;
  std::optional<std::uint16_t> zone;

  bool complete() const {
    return !source.empty() && !destination.empty() && protocol && source_port && destination_port;
  }
};

/// A required number: false when the attribute is too short for it.
template <typename T>
bool take(std::optional<T> value, std::optional<T>& into) {
  into = value;
  return value.has_value();
}

bool decode_addresses(ByteView attributes, Family family, Tuple& tuple) {
  AttributeReader reader(attributes);
  while (const auto attribute = reader.next()) {
    const bool source = attribute->type == source_attribute(family);
    if (!source && attribute->type != destination_attribute(family)) continue;
    if (attribute->payload.size() != address_length(family)) return false;
    (source ? tuple.source : tuple.destination) = attribute->payload;
  }
  return !reader.malformed();
}

bool decode_transport(ByteView attributes, Tuple& tuple) {
  AttributeReader reader(attributes);
  while (const auto attribute = reader.next()) {
    bool fits = true;
    if (attribute->type == CTA_PROTO_NUM) fits = take(attribute->u8(), tuple.protocol);
    if (attribute->type == CTA_PROTO_SRC_PORT) fits = take(attribute->be16(), tuple.source_port);
    if (attribute->type == CTA_PROTO_DST_PORT) fits = take(attribute->be16(), tuple.destination_port);
    if (!fits) return false;
  }
  return !reader.malformed();
}

bool decode_tuple(ByteView attributes, Family family, Tuple& tuple) {
  AttributeReader reader(attributes);
  while (const auto attribute = reader.next()) {
    bool fits = true;
    if (attribute->type == CTA_TUPLE_IP) fits = decode_addresses(attribute->payload, family, tuple);
    if (attribute->type == CTA_TUPLE_PROTO) fits = decode_transport(attribute->payload, tuple);
    if (attribute->type == CTA_TUPLE_ZONE) fits = take(attribute->be16(), tuple.zone);
    if (!fits) return false;
  }
  return !reader.malformed();
}

struct Flow {
  Tuple original;
  Tuple reply;
  std::optional<std::uint16_t> zone;
  std::optional<std::uint32_t> id;
  std::optional<std::uint32_t> status;
  /// The kernel's number for where a connection of the protocol stands; nothing for protocols without connections.
  std::optional<std::uint8_t> state;
  Carried request;
  Carried answer;
};

bool decode_counters(ByteView attributes, Carried& carried) {
  AttributeReader reader(attributes);
  while (const auto attribute = reader.next()) {
    if (attribute->type != CTA_COUNTERS_PACKETS && attribute->type != CTA_COUNTERS_BYTES) continue;
    const auto value = attribute->be64();
    if (!value) return false;
    (attribute->type == CTA_COUNTERS_PACKETS ? carried.packets : carried.bytes) = *value;
  }
  return !reader.malformed();
}

/// The same value for TCP and SCTP.
constexpr std::uint16_t kStateAttribute = CTA_PROTOINFO_TCP_STATE;
static_assert(kStateAttribute == static_cast<std::uint16_t>(CTA_PROTOINFO_SCTP_STATE));

bool decode_state(ByteView attributes, Flow& flow) {
  AttributeReader reader(attributes);
  while (const auto attribute = reader.next()) {
    if (attribute->type != CTA_PROTOINFO_TCP && attribute->type != CTA_PROTOINFO_SCTP) continue;
    AttributeReader nested(attribute->payload);
    while (const auto field = nested.next()) {
      if (field->type != kStateAttribute) continue;
      if (!take(field->u8(), flow.state)) return false;
    }
    if (nested.malformed()) return false;
  }
  return !reader.malformed();
}

bool decode_attributes(ByteView attributes, Family family, Flow& flow) {
  AttributeReader reader(attributes);
  while (const auto attribute = reader.next()) {
    bool fits = true;
    if (attribute->type == CTA_TUPLE_ORIG) fits = decode_tuple(attribute->payload, family, flow.original);
    if (attribute->type == CTA_TUPLE_REPLY) fits = decode_tuple(attribute->payload, family, flow.reply);
    if (attribute->type == CTA_ZONE) fits = take(attribute->be16(), flow.zone);
    if (attribute->type == CTA_ID) fits = take(attribute->be32(), flow.id);
    if (attribute->type == CTA_STATUS) fits = take(attribute->be32(), flow.status);
    if (attribute->type == CTA_PROTOINFO) fits = decode_state(attribute->payload, flow);
    if (attribute->type == CTA_COUNTERS_ORIG) fits = decode_counters(attribute->payload, flow.request);
    if (attribute->type == CTA_COUNTERS_REPLY) fits = decode_counters(attribute->payload, flow.answer);
    if (!fits) return false;
  }
  return !reader.malformed();
}

bool translated(const Flow& flow) {
  return !std::ranges::equal(flow.original.destination, flow.reply.source) ||
         flow.original.destination_port != flow.reply.source_port;
}

/// Whether sorted addresses of one length hold this one.
bool holds(ByteView sorted, ByteView address) {
  const std::size_t length = address.size();
  std::size_t low = 0;
  std::size_t high = sorted.size() / length;
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    const int order = std::memcmp(sorted.data() + middle * length, address.data(), length);
    if (order == 0) return true;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return false;
}

bool passes(const Flow& flow, const FlowFilter& filter) {
  if (!flow.original.complete() || !flow.reply.complete()) return false;
  if (flow.original.protocol != filter.protocol) return false;
  const bool answered = (flow.status.value_or(0) & IPS_SEEN_REPLY) != 0;
  if (filter.unanswered && answered) return false;
  if (filter.translated && (!answered || !translated(flow))) return false;
  if (filter.reply_sources && !holds(*filter.reply_sources, flow.reply.source)) return false;
  if (filter.port && flow.original.destination_port != filter.port) return false;
  return !filter.destination || std::ranges::equal(*filter.destination, flow.original.destination);
}

void append(Bytes& records, ByteView bytes) { records.insert(records.end(), bytes.begin(), bytes.end()); }

void append_be16(Bytes& records, std::uint16_t value) {
  std::array<std::uint8_t, 2> bytes{};
  netlink::store_be16(bytes.data(), value);
  append(records, bytes);
}

void append_be32(Bytes& records, std::uint32_t value) {
  std::array<std::uint8_t, 4> bytes{};
  netlink::store_be32(bytes.data(), value);
  append(records, bytes);
}

void append_record(Bytes& records, const Flow& flow) {
  append(records, flow.original.source);
  append(records, flow.original.destination);
  append(records, flow.reply.source);
  append(records, flow.reply.destination);
  append_be16(records, flow.original.source_port.value_or(0));
  append_be16(records, flow.original.destination_port.value_or(0));
  append_be16(records, flow.reply.source_port.value_or(0));
  append_be16(records, flow.reply.destination_port.value_or(0));
  // A zone of the original direction alone stands in its tuple. Deleting looks up that direction, so it serves as well as a common one.
  append_be16(records, flow.zone.value_or(flow.original.zone.value_or(0)));
  records.push_back(flow.original.protocol.value_or(0));
  records.push_back(flow.state.value_or(0));
  append_be32(records, flow.id.value_or(0));
  append_be32(records, flow.status.value_or(0));
}

std::uint64_t identity_of(const Flow& flow) {
  netlink::Digest::Record record;
  for (const Tuple* tuple : {&flow.original, &flow.reply}) {
    record.bytes(tuple->source).bytes(tuple->destination);
    record.number(tuple->source_port.value_or(0)).number(tuple->destination_port.value_or(0));
  }
  return record.number(flow.original.protocol.value_or(0)).number(flow.id.value_or(0)).value();
}

/// An address of any family, then its port.
void place(FlowWay& way, std::size_t address_at, ByteView address, std::size_t port_at, std::optional<std::uint16_t> port) {
  std::ranges::copy(address, way.begin() + static_cast<std::ptrdiff_t>(address_at));
  netlink::store_be16(way.data() + port_at, port.value_or(0));
}

std::string print_endpoint(const Layout& layout, ByteView record, std::size_t address, std::size_t port) {
  return netlink::print_endpoint(record.subspan(address, layout.address), netlink::load_be16(record.data() + port));
}

}  // namespace

Bytes encode_list(const FlowFilter& filter, std::uint32_t sequence, bool in_kernel) {
  MessageWriter writer;
  writer.begin_message(message_type(IPCTNL_MSG_CT_GET), NLM_F_REQUEST | NLM_F_DUMP, sequence,
                       static_cast<std::uint8_t>(filter.family));
  if (in_kernel) {
    const bool by_address = filter.destination && kernel_matches_addresses(filter.family);
    std::uint32_t match = kMatchProtocol;
    if (by_address) match |= kMatchDestination;
    if (filter.port) match |= kMatchDestinationPort;
    writer.nest(CTA_TUPLE_ORIG, [&] {
      if (by_address) {
        writer.nest(CTA_TUPLE_IP, [&] { writer.put_bytes(destination_attribute(filter.family), *filter.destination); });
      }
      writer.nest(CTA_TUPLE_PROTO, [&] {
        writer.put_u8(CTA_PROTO_NUM, filter.protocol);
        if (filter.port) writer.put_be16(CTA_PROTO_DST_PORT, *filter.port);
      });
    });
    const bool by_reply_source = filter.reply_sources && filter.reply_sources->size() == address_length(filter.family) &&
                                 kernel_matches_addresses(filter.family);
    if (by_reply_source) {
      writer.nest(CTA_TUPLE_REPLY, [&] {
        writer.nest(CTA_TUPLE_IP, [&] { writer.put_bytes(source_attribute(filter.family), *filter.reply_sources); });
      });
    }
    // Host order, unlike everything else in ctnetlink.
    writer.nest(CTA_FILTER, [&] {
      writer.put_host32(CTA_FILTER_ORIG_FLAGS, match);
      if (by_reply_source) writer.put_host32(CTA_FILTER_REPLY_FLAGS, kMatchSource);
    });
    if (filter.unanswered) {
      writer.put_be32(CTA_STATUS, 0);
      writer.put_be32(CTA_STATUS_MASK, IPS_SEEN_REPLY);
    } else if (filter.translated) {
      writer.put_be32(CTA_STATUS, IPS_SEEN_REPLY | IPS_DST_NAT);
      writer.put_be32(CTA_STATUS_MASK, IPS_SEEN_REPLY | IPS_DST_NAT);
    }
  }
  writer.end_message();
  return writer.take();
}

Status decode_flow(const Message& message, const FlowFilter& filter, Bytes& records) {
  if (message.type != message_type(IPCTNL_MSG_CT_NEW)) return Done{};
  const auto family = message.family();
  if (!family) return decode_error("a conntrack flow is truncated");
  if (*family != static_cast<std::uint8_t>(filter.family)) return Done{};
  Flow flow;
  if (!decode_attributes(message.attributes(), filter.family, flow)) {
    return decode_error("a conntrack flow is malformed");
  }
  if (!passes(flow, filter)) return Done{};
  if (!flow.id) return decode_error("a conntrack flow has no id");
  append_record(records, flow);
  return Done{};
}

Bytes encode_list_all(std::uint32_t sequence) {
  MessageWriter writer;
  writer.begin_message(message_type(IPCTNL_MSG_CT_GET), NLM_F_REQUEST | NLM_F_DUMP, sequence, AF_UNSPEC);
  writer.end_message();
  return writer.take();
}

bool is_end(const Message& message) { return message.type == message_type(IPCTNL_MSG_CT_DELETE); }

netlink::Result<std::optional<TranslatedFlow>> decode_translated(const Message& message) {
  std::optional<TranslatedFlow> found;
  if (!is_end(message) && message.type != message_type(IPCTNL_MSG_CT_NEW)) return found;
  const auto number = message.family();
  if (!number) return decode_error("a conntrack flow is truncated");
  const Family family = *number == static_cast<std::uint8_t>(Family::kIPv6) ? Family::kIPv6 : Family::kIPv4;
  if (*number != static_cast<std::uint8_t>(family)) return found;
  Flow flow;
  if (!decode_attributes(message.attributes(), family, flow)) return decode_error("a conntrack flow is malformed");
  if (!flow.original.complete() || !flow.reply.complete() || !translated(flow)) return found;
  found.emplace();
  found->identity = identity_of(flow);
  place(found->way, 0, flow.original.destination, 16, flow.original.destination_port);
  found->way[18] = flow.original.protocol.value_or(0);
  found->way[19] = static_cast<std::uint8_t>(address_length(family));
  place(found->way, 20, flow.reply.source, 36, flow.reply.source_port);
  found->request = flow.request;
  found->reply = flow.answer;
  return found;
}

void encode_delete(MessageWriter& writer, std::uint32_t sequence, Family family, ByteView record) {
  const Layout layout(family);
  writer.begin_message(message_type(IPCTNL_MSG_CT_DELETE), NLM_F_REQUEST | NLM_F_ACK, sequence,
                       static_cast<std::uint8_t>(family));
  writer.nest(CTA_TUPLE_ORIG, [&] {
    writer.nest(CTA_TUPLE_IP, [&] {
      writer.put_bytes(source_attribute(family), record.subspan(layout.original_source(), layout.address));
      writer.put_bytes(destination_attribute(family), record.subspan(layout.original_destination(), layout.address));
    });
    writer.nest(CTA_TUPLE_PROTO, [&] {
      writer.put_u8(CTA_PROTO_NUM, record[layout.protocol()]);
      writer.put_bytes(CTA_PROTO_SRC_PORT, record.subspan(layout.original_source_port(), 2));
      writer.put_bytes(CTA_PROTO_DST_PORT, record.subspan(layout.original_destination_port(), 2));
    });
  });
  // Kernels built without zones refuse the attribute, and have only zone 0.
  if (netlink::load_be16(record.data() + layout.zone()) != 0) {
    writer.put_bytes(CTA_ZONE, record.subspan(layout.zone(), 2));
  }
  writer.put_bytes(CTA_ID, record.subspan(layout.id(), 4));
  writer.end_message();
}

std::string describe(Family family, ByteView record) {
  const Layout layout(family);
  return netlink::print_protocol(record[layout.protocol()]) + " " +
         print_endpoint(layout, record, layout.original_source(), layout.original_source_port()) + " > " +
         print_endpoint(layout, record, layout.original_destination(), layout.original_destination_port()) +
         ", replies from " + print_endpoint(layout, record, layout.reply_source(), layout.reply_source_port());
}

}  // namespace pointsman::conntrack
