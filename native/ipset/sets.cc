#include "ipset/sets.h"

#include <linux/netfilter/ipset/ip_set.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "netlink/attribute_reader.h"
#include "netlink/message_writer.h"

namespace pointsman::ipset {

namespace {

using netlink::Bytes;
using netlink::Done;
using netlink::Message;
using netlink::MessageWriter;
using netlink::Result;
using netlink::Socket;
using netlink::Status;

/// The oldest protocol that every kernel in use still speaks.
constexpr std::uint8_t kProtocol = IPSET_PROTOCOL_MIN;
/// There whether the code is a module or not.
constexpr const char* kLoaded = "/sys/module/ip_set";

constexpr std::uint16_t message_type(std::uint8_t command) {
  return static_cast<std::uint16_t>(NFNL_SUBSYS_IPSET << 8 | command);
}

bool is_loaded() { return access(kLoaded, F_OK) == 0; }

}  // namespace

Bytes encode_list(std::uint32_t sequence) {
  MessageWriter writer;
  writer.begin_message(message_type(IPSET_CMD_LIST), NLM_F_REQUEST | NLM_F_DUMP, sequence, AF_INET);
  writer.put_u8(IPSET_ATTR_PROTOCOL, kProtocol);
  writer.put_be32(IPSET_ATTR_FLAGS, IPSET_FLAG_LIST_SETNAME);
  writer.end_message();
  return writer.take();
}

Bytes encode_destroy(std::uint32_t sequence, const std::string& name) {
  MessageWriter writer;
  // Without NLM_F_EXCL the kernel calls a missing set destroyed.
  writer.begin_message(message_type(IPSET_CMD_DESTROY), NLM_F_REQUEST | NLM_F_ACK | NLM_F_EXCL, sequence, AF_INET);
  writer.put_u8(IPSET_ATTR_PROTOCOL, kProtocol);
  writer.put_string(IPSET_ATTR_SETNAME, name);
  writer.end_message();
  return writer.take();
}

Result<std::string> decode_name(const Message& message) {
  netlink::AttributeReader reader(message.attributes());
  while (const auto attribute = reader.next()) {
    if (attribute->type == IPSET_ATTR_SETNAME) return std::string(attribute->string());
  }
  return netlink::decode_error("a set without a name");
}

Result<std::vector<std::string>> set_names() {
  std::vector<std::string> names;
  if (!is_loaded()) return names;
  auto socket = Socket::open();
  if (!socket.ok()) return socket.error();
  const auto dumped = socket.value().dump_consistent(encode_list(1), [&] { names.clear(); }, [&](const Message& message) -> Status {
    auto name = decode_name(message);
    if (!name.ok()) return name.error();
    names.push_back(std::move(name.value()));
    return Done{};
  });
  if (!dumped.ok()) return dumped.error();
  return names;
}

Result<bool> destroy_set(const std::string& name) {
  if (!is_loaded()) return false;
  auto socket = Socket::open();
  if (!socket.ok()) return socket.error();
  const auto answered = socket.value().request(encode_destroy(1, name), [](const Message&) -> Status { return Done{}; });
  if (answered.ok()) return true;
  netlink::Error error = answered.error();
  if (error.code == ENOENT) return false;
  // ipset has error numbers of its own, beyond errno's.
  if (error.code == IPSET_ERR_BUSY) error.code = EBUSY;
  return error;
}

}  // namespace pointsman::ipset
