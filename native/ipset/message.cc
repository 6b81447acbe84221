#include "ipset/message.h"

#include <linux/netfilter/ipset/ip_set.h>
#include <linux/netfilter/ipset/ip_set_bitmap.h>
#include <linux/netfilter/ipset/ip_set_hash.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "netlink/attribute_reader.h"
#include "netlink/text.h"

namespace pointsman::ipset {

namespace {

using netlink::Attribute;
using netlink::AttributeReader;
using netlink::Bytes;
using netlink::ByteView;
using netlink::Done;
using netlink::Message;
using netlink::MessageWriter;
using netlink::Result;
using netlink::Status;

/// The oldest protocol that every kernel in use still speaks.
constexpr std::uint8_t kProtocol = IPSET_PROTOCOL_MIN;
/// The kernel refuses numbers of ipset that are not marked so.
constexpr std::uint16_t kNetworkOrder = NLA_F_NET_BYTEORDER;
/// IPSET_ATTR_BITMASK, which headers before Linux 6.3 lack: a mask of addresses.
constexpr std::uint16_t kBitmask = IPSET_ATTR_MARKMASK + 1;
/// The elements of a message are in one attribute, which has at most 64 KiB; an element has less than 512 bytes.
constexpr std::size_t kEnough = 65'000;

struct TypeName {
  Type type;
  const char* name;
  /// The oldest that has comments: every kernel in use has it, and so does every release of ipset that lists it.
  std::uint8_t revision;
};

constexpr std::array kTypes{
    TypeName{Type::kIp, "hash:ip", 2},
    TypeName{Type::kIpPort, "hash:ip,port", 3},
    TypeName{Type::kIpPortIp, "hash:ip,port,ip", 3},
    TypeName{Type::kIpPortNet, "hash:ip,port,net", 5},
    TypeName{Type::kNetNet, "hash:net,net", 0},
    TypeName{Type::kPort, "bitmap:port", 2},
};

void begin(MessageWriter& writer, int command, std::uint16_t flags, std::uint32_t sequence, std::uint8_t family = AF_INET) {
  const auto type = static_cast<std::uint16_t>(NFNL_SUBSYS_IPSET << 8 | command);
  writer.begin_message(type, static_cast<std::uint16_t>(NLM_F_REQUEST | flags), sequence, family);
  writer.put_u8(IPSET_ATTR_PROTOCOL, kProtocol);
}

void put_number16(MessageWriter& writer, std::uint16_t type, std::uint16_t value) {
  writer.put_be16(static_cast<std::uint16_t>(type | kNetworkOrder), value);
}

void put_number32(MessageWriter& writer, std::uint16_t type, std::uint32_t value) {
  writer.put_be32(static_cast<std::uint16_t>(type | kNetworkOrder), value);
}

void put_address(MessageWriter& writer, std::uint16_t type, ByteView address) {
  const std::uint16_t family = address.size() == 4 ? IPSET_ATTR_IPADDR_IPV4 : IPSET_ATTR_IPADDR_IPV6;
  writer.nest(type, [&] { writer.put_bytes(static_cast<std::uint16_t>(family | kNetworkOrder), address); });
}

/// Takes the parts of an element from its front.
class Parts {
 public:
  explicit Parts(ByteView element) : rest_(element) {}

  ByteView take(std::size_t length) {
    const ByteView part = rest_.first(length);
    rest_ = rest_.subspan(length);
    return part;
  }

 private:
  ByteView rest_;
};

void put_element(MessageWriter& writer, const Layout& layout, ByteView element, const std::optional<std::string>& comment,
                 std::uint32_t line) {
  Parts parts(element);
  writer.nest(IPSET_ATTR_DATA, [&] {
    writer.put_host32(IPSET_ATTR_CADT_LINENO, line);
    if (layout.address != 0) put_address(writer, IPSET_ATTR_IP, parts.take(layout.address));
    if (layout.port) put_number16(writer, IPSET_ATTR_PORT, netlink::load_be16(parts.take(2).data()));
    if (layout.protocol) writer.put_u8(IPSET_ATTR_PROTO, parts.take(1)[0]);
    if (layout.second != 0) put_address(writer, IPSET_ATTR_IP2, parts.take(layout.second));
    if (layout.prefix) writer.put_u8(IPSET_ATTR_CIDR, parts.take(1)[0]);
    if (layout.second_prefix) writer.put_u8(IPSET_ATTR_CIDR2, parts.take(1)[0]);
    if (comment) writer.put_string(IPSET_ATTR_COMMENT, *comment);
  });
}

void read_header(ByteView attributes, Listing& listing) {
  std::optional<std::uint16_t> first;
  std::optional<std::uint16_t> last;
  AttributeReader reader(attributes);
  while (const auto attribute = reader.next()) {
    switch (attribute->type) {
      case IPSET_ATTR_HASHSIZE:
        listing.hash_size = attribute->be32().value_or(0);
        break;
      case IPSET_ATTR_MAXELEM:
        listing.max_elements = attribute->be32().value_or(0);
        break;
      case IPSET_ATTR_REFERENCES:
        listing.references = attribute->be32().value_or(0);
        break;
      case IPSET_ATTR_ELEMENTS:
        listing.size = attribute->be32().value_or(0);
        break;
      case IPSET_ATTR_CADT_FLAGS: {
        const std::uint32_t flags = attribute->be32().value_or(0);
        listing.comments = (flags & IPSET_FLAG_WITH_COMMENT) != 0;
        listing.counters = (flags & IPSET_FLAG_WITH_COUNTERS) != 0;
        // With this one a full set throws out what it holds.
        if ((flags & IPSET_FLAG_WITH_FORCEADD) != 0) listing.plain = false;
        break;
      }
      case IPSET_ATTR_PORT:
        first = attribute->be16();
        break;
      case IPSET_ATTR_PORT_TO:
        last = attribute->be16();
        break;
      case IPSET_ATTR_TIMEOUT:
      case IPSET_ATTR_NETMASK:
      case IPSET_ATTR_MARKMASK:
      case kBitmask:
        listing.plain = false;
        break;
      default:
        break;
    }
  }
  if (first && last) listing.ports = Ports{*first, *last};
}

ByteView address_in(const Attribute& nest) {
  AttributeReader reader(nest.payload);
  const auto address = reader.next();
  return address ? address->payload : ByteView{};
}

/// The parts of an element, by the attributes that hold them; all empty at first.
struct Element {
  ByteView address;
  ByteView port;
  ByteView protocol;
  ByteView second;
  ByteView prefix;
  ByteView second_prefix;

  bool is_of(const Layout& layout) const {
    return address.size() == layout.address && port.size() == (layout.port ? 2 : 0) && protocol.size() == (layout.protocol ? 1 : 0) &&
           second.size() == layout.second && prefix.size() == (layout.prefix ? 1 : 0) &&
           second_prefix.size() == (layout.second_prefix ? 1 : 0);
  }
};

Status read_element(ByteView attributes, const Layout& layout, Listing& listing) {
  Element element;
  std::optional<std::string> comment;
  std::uint64_t packets = 0;
  AttributeReader reader(attributes);
  while (const auto attribute = reader.next()) {
    if (attribute->type == IPSET_ATTR_IP) element.address = address_in(*attribute);
    if (attribute->type == IPSET_ATTR_PORT) element.port = attribute->payload;
    if (attribute->type == IPSET_ATTR_PROTO) element.protocol = attribute->payload;
    if (attribute->type == IPSET_ATTR_IP2) element.second = address_in(*attribute);
    if (attribute->type == IPSET_ATTR_CIDR) element.prefix = attribute->payload;
    if (attribute->type == IPSET_ATTR_CIDR2) element.second_prefix = attribute->payload;
    if (attribute->type == IPSET_ATTR_COMMENT) comment = attribute->string();
    if (attribute->type == IPSET_ATTR_PACKETS) packets = attribute->be64().value_or(0);
    // Of single elements: what is listed does not match.
    if (attribute->type == IPSET_ATTR_CADT_FLAGS) listing.plain = false;
  }
  if (!element.is_of(layout)) return netlink::decode_error("an element of set " + listing.name + " is not what its type says");
  for (const ByteView part : {element.address, element.port, element.protocol, element.second, element.prefix, element.second_prefix}) {
    listing.elements->insert(listing.elements->end(), part.begin(), part.end());
  }
  listing.element_comments.push_back(std::move(comment));
  listing.element_packets.push_back(packets);
  return Done{};
}

Status read_elements(ByteView elements, Listing& listing) {
  const auto type = type_named(listing.type);
  if (!type || !listing.elements) return Done{};
  const Layout layout = layout_of(*type, listing.family);
  AttributeReader reader(elements);
  while (const auto attribute = reader.next()) {
    if (attribute->type != IPSET_ATTR_DATA) continue;
    if (auto read = read_element(attribute->payload, layout, listing); !read.ok()) return read;
  }
  if (reader.malformed()) return netlink::decode_error("the elements of set " + listing.name + " are malformed");
  return Done{};
}

}  // namespace

Layout layout_of(Type type, std::uint8_t family) {
  const std::size_t address = family == AF_INET ? 4 : 16;
  switch (type) {
    case Type::kIp:
      return {.address = address};
    case Type::kIpPort:
      return {.address = address, .port = true, .protocol = true};
    case Type::kIpPortIp:
      return {.address = address, .port = true, .protocol = true, .second = address};
    case Type::kIpPortNet:
      return {.address = address, .port = true, .protocol = true, .second = address, .second_prefix = true};
    case Type::kNetNet:
      return {.address = address, .second = address, .prefix = true, .second_prefix = true};
    case Type::kPort:
      break;
  }
  return {.port = true};
}

const char* name_of(Type type) { return kTypes[static_cast<std::size_t>(type)].name; }

std::optional<Type> type_named(std::string_view name) {
  for (const TypeName& known : kTypes) {
    if (name == known.name) return known.type;
  }
  return std::nullopt;
}

Bytes encode_list_names(std::uint32_t sequence) {
  MessageWriter writer;
  begin(writer, IPSET_CMD_LIST, NLM_F_DUMP, sequence);
  put_number32(writer, IPSET_ATTR_FLAGS, IPSET_FLAG_LIST_SETNAME);
  writer.end_message();
  return writer.take();
}

Bytes encode_list(std::uint32_t sequence, const std::string& name, Extent extent) {
  MessageWriter writer;
  begin(writer, IPSET_CMD_LIST, NLM_F_DUMP, sequence);
  writer.put_string(IPSET_ATTR_SETNAME, name);
  if (extent == Extent::kWithoutElements) put_number32(writer, IPSET_ATTR_FLAGS, IPSET_FLAG_LIST_HEADER);
  writer.end_message();
  return writer.take();
}

Result<std::string> decode_name(const Message& message) {
  AttributeReader reader(message.attributes());
  while (const auto attribute = reader.next()) {
    if (attribute->type == IPSET_ATTR_SETNAME) return std::string(attribute->string());
  }
  return netlink::decode_error("a set without a name");
}

Status decode_list(const Message& message, Listing& listing) {
  ByteView header;
  ByteView elements;
  AttributeReader reader(message.attributes());
  while (const auto attribute = reader.next()) {
    if (attribute->type == IPSET_ATTR_SETNAME) listing.name = attribute->string();
    if (attribute->type == IPSET_ATTR_FAMILY) listing.family = attribute->u8().value_or(0);
    if (attribute->type == IPSET_ATTR_DATA) header = attribute->payload;
    if (attribute->type == IPSET_ATTR_ADT) elements = attribute->payload;
    if (attribute->type != IPSET_ATTR_TYPENAME) continue;
    listing.type = attribute->string();
    if (type_named(listing.type) && !listing.elements) listing.elements.emplace();
  }
  if (reader.malformed()) return netlink::decode_error("a set is malformed");
  if (listing.type.empty()) return netlink::decode_error("a set without a type");
  read_header(header, listing);
  return read_elements(elements, listing);
}

void encode_create(MessageWriter& writer, std::uint32_t sequence, const Creation& creation) {
  begin(writer, IPSET_CMD_CREATE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, sequence);
  const TypeName& type = kTypes[static_cast<std::size_t>(creation.type)];
  writer.put_string(IPSET_ATTR_SETNAME, creation.name);
  writer.put_string(IPSET_ATTR_TYPENAME, type.name);
  writer.put_u8(IPSET_ATTR_REVISION, type.revision);
  writer.put_u8(IPSET_ATTR_FAMILY, creation.family);
  writer.nest(IPSET_ATTR_DATA, [&] {
    if (creation.type == Type::kPort) {
      put_number16(writer, IPSET_ATTR_PORT, creation.ports.first);
      put_number16(writer, IPSET_ATTR_PORT_TO, creation.ports.last);
    } else {
      put_number32(writer, IPSET_ATTR_HASHSIZE, creation.hash_size);
      put_number32(writer, IPSET_ATTR_MAXELEM, creation.max_elements);
    }
    std::uint32_t flags = 0;
    if (creation.comments) flags |= IPSET_FLAG_WITH_COMMENT;
    if (creation.counters) flags |= IPSET_FLAG_WITH_COUNTERS;
    if (flags != 0) put_number32(writer, IPSET_ATTR_CADT_FLAGS, flags);
  });
  writer.end_message();
}

void encode_destroy(MessageWriter& writer, std::uint32_t sequence, const std::string& name) {
  // Without NLM_F_EXCL the kernel calls a missing set destroyed.
  begin(writer, IPSET_CMD_DESTROY, NLM_F_ACK | NLM_F_EXCL, sequence);
  writer.put_string(IPSET_ATTR_SETNAME, name);
  writer.end_message();
}

void encode_flush(MessageWriter& writer, std::uint32_t sequence, const std::string& name) {
  begin(writer, IPSET_CMD_FLUSH, NLM_F_ACK, sequence);
  writer.put_string(IPSET_ATTR_SETNAME, name);
  writer.end_message();
}

std::size_t encode_elements(MessageWriter& writer, std::uint32_t sequence, const ElementsOperation& operation, std::size_t first) {
  const Layout layout = layout_of(operation.type, operation.family);
  const std::size_t count = operation.elements.size() / layout.length();
  begin(writer, operation.add ? IPSET_CMD_ADD : IPSET_CMD_DEL, NLM_F_ACK, sequence);
  writer.put_string(IPSET_ATTR_SETNAME, operation.name);
  // The kernel answers with the number of the element that failed, in this place.
  writer.put_host32(IPSET_ATTR_LINENO, 0);
  std::size_t next = first;
  writer.nest(IPSET_ATTR_ADT, [&] {
    for (const std::size_t start = writer.size(); next < count && writer.size() - start < kEnough; ++next) {
      const ByteView element = ByteView(operation.elements).subspan(next * layout.length(), layout.length());
      // A line 0 would mean that none failed.
      put_element(writer, layout, element, operation.comments.empty() ? std::nullopt : operation.comments[next],
                  static_cast<std::uint32_t>(next - first + 1));
    }
  });
  writer.end_message();
  return next - first;
}

std::optional<std::size_t> failed_element(const netlink::Acknowledgement& answer) {
  if (answer.request.size() < sizeof(nfgenmsg)) return std::nullopt;
  AttributeReader reader(answer.request.subspan(sizeof(nfgenmsg)));
  while (const auto attribute = reader.next()) {
    if (attribute->type != IPSET_ATTR_LINENO) continue;
    const std::uint32_t line = attribute->host32().value_or(0);
    if (line > 0) return line - 1;
  }
  return std::nullopt;
}

std::string describe(const Layout& layout, ByteView element) {
  Parts parts(element);
  const ByteView address = parts.take(layout.address);
  std::string text;
  if (layout.port) {
    const std::uint16_t port = netlink::load_be16(parts.take(2).data());
    text = address.empty() ? std::to_string(port) : netlink::print_endpoint(address, port);
  } else {
    text = netlink::print_address(address);
  }
  if (layout.protocol) text += " " + netlink::print_protocol(parts.take(1)[0]);
  const ByteView second = parts.take(layout.second);
  if (layout.prefix) text += "/" + std::to_string(parts.take(1)[0]);
  if (layout.second != 0) text += " " + netlink::print_address(second);
  if (layout.second_prefix) text += "/" + std::to_string(parts.take(1)[0]);
  return text;
}

}  // namespace pointsman::ipset
