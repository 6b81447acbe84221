#pragma once

#include <optional>
#include <string>
#include <vector>

#include "netlink/answer.h"
#include "netlink/message_writer.h"

namespace pointsman::ipset {

/// The types of sets that are made and read; others are identified by name.
enum class Type { kIp, kIpPort, kIpPortIp, kIpPortNet, kNetNet, kPort };

/// What is packed for each element, one after the other: address, port (2, network order), protocol (1), second address, length of the first prefix (1), and
/// of the second (1).
struct Layout {
  std::size_t address = 0;
  bool port = false;
  bool protocol = false;
  std::size_t second = 0;
  bool prefix = false;
  bool second_prefix = false;

  std::size_t length() const { return address + (port ? 2 : 0) + (protocol ? 1 : 0) + second + (prefix ? 1 : 0) + (second_prefix ? 1 : 0); }
};

/// `family`: AF_INET or AF_INET6; AF_UNSPEC with `kPort`.
Layout layout_of(Type type, std::uint8_t family);
/// As the kernel calls it, and as the user does.
const char* name_of(Type type);
std::optional<Type> type_named(std::string_view name);

struct Ports {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
};

/// How to make a set.
struct Creation {
  std::string name;
  Type type = Type::kIp;
  std::uint8_t family = 0;
  std::uint32_t hash_size = 0;
  std::uint32_t max_elements = 0;
  bool comments = false;
  /// Whether packets that match an element are counted.
  bool counters = false;
  /// The range of `kPort`.
  Ports ports;
};

/// The comments of elements; empty where none has one.
using Comments = std::vector<std::optional<std::string>>;

/// Elements to add to a set, or to delete from one.
struct ElementsOperation {
  bool add = true;
  std::string name;
  Type type = Type::kIp;
  /// As in `layout_of`, which defines how the elements are packed.
  std::uint8_t family = 0;
  netlink::Bytes elements;
  /// One for each element, or empty.
  Comments comments;
};

/// A set as the kernel reports it.
struct Listing {
  std::string name;
  std::string type;
  std::uint8_t family = 0;
  std::uint32_t hash_size = 0;
  std::uint32_t max_elements = 0;
  bool comments = false;
  bool counters = false;
  std::optional<Ports> ports;
  /// No option beyond these that changes what is in it.
  bool plain = true;
  std::uint32_t references = 0;
  /// How many elements the kernel reports for it; 0 where it does not.
  std::uint32_t size = 0;
  /// Packed; nothing where the type is not one of `Type`.
  std::optional<netlink::Bytes> elements;
  /// One for each element.
  Comments element_comments;
  /// Packets that matched each element, where they are counted; 0 otherwise.
  std::vector<std::uint64_t> element_packets;
};

/// How much of a set is listed.
enum class Extent { kWhole, kWithoutElements };

/// Requests for the names of all sets and for one set (NLM_F_DUMP).
netlink::Bytes encode_list_names(std::uint32_t sequence);
netlink::Bytes encode_list(std::uint32_t sequence, const std::string& name, Extent extent);
/// The name in an answer to the former.
netlink::Result<std::string> decode_name(const netlink::Message& message);
/// Adds the content of one answer to the latter; the first has what the others need.
netlink::Status decode_list(const netlink::Message& message, Listing& listing);

// With NLM_F_ACK.
void encode_create(netlink::MessageWriter& writer, std::uint32_t sequence, const Creation& creation);
void encode_destroy(netlink::MessageWriter& writer, std::uint32_t sequence, const std::string& name);
void encode_flush(netlink::MessageWriter& writer, std::uint32_t sequence, const std::string& name);
/// As many elements as fit into one message, from the one at `first`; answers how many. Elements that are there are added without complaint, and those that
/// are not are deleted so. The kernel stops at the first that fails.
std::size_t encode_elements(netlink::MessageWriter& writer, std::uint32_t sequence, const ElementsOperation& operation, std::size_t first);
/// Which of the message's elements failed, by the answer to the former.
std::optional<std::size_t> failed_element(const netlink::Acknowledgement& answer);

/// `10.96.0.1:80 tcp 10.0.0.0/8`, or what there is of it.
std::string describe(const Layout& layout, netlink::ByteView element);
/// The error with what ipset means by its own numbers, which lie beyond errno's; `type`: of the set, where it is known.
netlink::Error translated(netlink::Error error, std::optional<Type> type);

}  // namespace pointsman::ipset
