#include "conntrack/timeout_policy.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_cttimeout.h>
#include <sys/socket.h>

#include <cerrno>

#include "netlink/attribute_reader.h"
#include "netlink/message_writer.h"

namespace pointsman::conntrack {

namespace {

using netlink::Attribute;
using netlink::AttributeReader;
using netlink::Done;
using netlink::MessageWriter;

constexpr std::uint16_t policy_message(std::uint16_t command) { return static_cast<std::uint16_t>(NFNL_SUBSYS_CTNETLINK_TIMEOUT << 8 | command); }

void begin_policy(MessageWriter& writer, std::uint16_t command, std::uint16_t flags, std::uint32_t sequence) {
  writer.begin_message(policy_message(command), static_cast<std::uint16_t>(NLM_F_REQUEST | flags), sequence, AF_UNSPEC);
}

/// Reads the seconds by attribute; false when one is malformed.
bool read_seconds(const Attribute& data, std::vector<std::uint32_t>& seconds) {
  AttributeReader reader(data.payload);
  while (const auto attribute = reader.next()) {
    const auto value = attribute->be32();
    if (!value) return false;
    if (attribute->type == 0 || attribute->type > kMostPolicyStates) continue;
    if (seconds.size() < attribute->type) seconds.resize(attribute->type);
    seconds[attribute->type - 1U] = *value;
  }
  return !reader.malformed();
}

}  // namespace

netlink::Bytes encode_set_policy(std::uint32_t sequence, const TimeoutPolicy& policy) {
  MessageWriter writer;
  begin_policy(writer, IPCTNL_MSG_TIMEOUT_NEW, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, sequence);
  writer.put_string(CTA_TIMEOUT_NAME, policy.name);
  writer.put_be16(CTA_TIMEOUT_L3PROTO, static_cast<std::uint16_t>(policy.family));
  writer.put_u8(CTA_TIMEOUT_L4PROTO, policy.protocol);
  writer.nest(CTA_TIMEOUT_DATA, [&] {
    std::uint16_t state = 0;
    for (const std::uint32_t seconds : policy.seconds) writer.put_be32(++state, seconds);
  });
  writer.end_message();
  return writer.take();
}

netlink::Bytes encode_list_policies(std::uint32_t sequence) {
  MessageWriter writer;
  begin_policy(writer, IPCTNL_MSG_TIMEOUT_GET, NLM_F_DUMP, sequence);
  writer.end_message();
  return writer.take();
}

netlink::Bytes encode_delete_policy(std::uint32_t sequence, const std::string& name) {
  MessageWriter writer;
  begin_policy(writer, IPCTNL_MSG_TIMEOUT_DELETE, NLM_F_ACK, sequence);
  writer.put_string(CTA_TIMEOUT_NAME, name);
  writer.end_message();
  return writer.take();
}

netlink::Result<std::optional<TimeoutPolicy>> decode_policy(const netlink::Message& message) {
  TimeoutPolicy policy;
  std::optional<std::uint16_t> family;
  AttributeReader reader(message.attributes());
  while (const auto attribute = reader.next()) {
    if (attribute->type == CTA_TIMEOUT_NAME) policy.name = attribute->string();
    if (attribute->type == CTA_TIMEOUT_L3PROTO) family = attribute->be16();
    if (attribute->type == CTA_TIMEOUT_L4PROTO) policy.protocol = attribute->u8().value_or(0);
    if (attribute->type == CTA_TIMEOUT_DATA && !read_seconds(*attribute, policy.seconds)) {
      return netlink::decode_error("a timeout policy with malformed seconds");
    }
  }
  if (reader.malformed() || policy.name.empty() || !family) return netlink::decode_error("a timeout policy without name or family");
  if (*family != static_cast<std::uint16_t>(Family::kIPv4) && *family != static_cast<std::uint16_t>(Family::kIPv6)) {
    return std::optional<TimeoutPolicy>{};
  }
  policy.family = static_cast<Family>(*family);
  return std::optional<TimeoutPolicy>(std::move(policy));
}

netlink::Result<bool> set_policy(const TimeoutPolicy& policy) {
  auto socket = netlink::Socket::open();
  if (!socket.ok()) return socket.error();
  const auto answered = socket.value().request(encode_set_policy(1, policy), [](const netlink::Message&) -> netlink::Status { return Done{}; });
  if (!answered.ok()) return answered.error();
  return true;
}

netlink::Result<std::vector<TimeoutPolicy>> list_policies() {
  auto socket = netlink::Socket::open();
  if (!socket.ok()) return socket.error();
  std::vector<TimeoutPolicy> policies;
  const auto listed = socket.value().dump_consistent(
      encode_list_policies(1), [&] { policies.clear(); },
      [&](const netlink::Message& message) -> netlink::Status {
        auto decoded = decode_policy(message);
        if (!decoded.ok()) return decoded.error();
        if (decoded.value()) policies.push_back(std::move(*decoded.value()));
        return Done{};
      });
  if (!listed.ok()) return listed.error();
  return policies;
}

netlink::Result<bool> delete_policy(const std::string& name) {
  auto socket = netlink::Socket::open();
  if (!socket.ok()) return socket.error();
  const auto answered = socket.value().request(encode_delete_policy(1, name), [](const netlink::Message&) -> netlink::Status { return Done{}; });
  if (answered.ok()) return true;
  if (answered.error().code == ENOENT) return false;
  return answered.error();
}

}  // namespace pointsman::conntrack
