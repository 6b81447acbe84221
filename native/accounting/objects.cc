#include "accounting/objects.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_acct.h>
#include <sys/socket.h>

#include <cerrno>

#include "netlink/attribute_reader.h"
#include "netlink/message_writer.h"

namespace pointsman::accounting {

namespace {

using netlink::Bytes;
using netlink::Done;
using netlink::Message;
using netlink::MessageWriter;
using netlink::Result;
using netlink::Socket;
using netlink::Status;

Bytes request(std::uint8_t command, std::uint16_t flags, std::uint32_t sequence, const std::string& name) {
  MessageWriter writer;
  const auto type = static_cast<std::uint16_t>(NFNL_SUBSYS_ACCT << 8 | command);
  writer.begin_message(type, static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags), sequence, AF_UNSPEC);
  writer.put_string(NFACCT_NAME, name);
  writer.end_message();
  return writer.take();
}

}  // namespace

Bytes encode_new(std::uint32_t sequence, const std::string& name) {
  return request(NFNL_MSG_ACCT_NEW, NLM_F_CREATE | NLM_F_EXCL, sequence, name);
}

Bytes encode_get(std::uint32_t sequence, const std::string& name) { return request(NFNL_MSG_ACCT_GET, 0, sequence, name); }

Result<std::uint64_t> decode_packets(const Message& message) {
  netlink::AttributeReader reader(message.attributes());
  while (const auto attribute = reader.next()) {
    if (attribute->type != NFACCT_PKTS) continue;
    if (const auto packets = attribute->be64()) return *packets;
  }
  return netlink::decode_error("an accounting object without a count of packets");
}

Result<bool> create_object(const std::string& name) {
  auto socket = Socket::open();
  if (!socket.ok()) return socket.error();
  const auto answered = socket.value().request(encode_new(1, name), [](const Message&) -> Status { return Done{}; });
  if (answered.ok()) return true;
  if (answered.error().code == EEXIST) return false;
  return answered.error();
}

Result<std::optional<std::uint64_t>> packets_of(const std::string& name) {
  auto socket = Socket::open();
  if (!socket.ok()) return socket.error();
  std::optional<std::uint64_t> packets;
  const auto answered = socket.value().request(encode_get(1, name), [&](const Message& message) -> Status {
    const auto decoded = decode_packets(message);
    if (!decoded.ok()) return decoded.error();
    packets = decoded.value();
    return Done{};
  });
  if (!answered.ok() && answered.error().code != ENOENT) return answered.error();
  return packets;
}

}  // namespace pointsman::accounting
