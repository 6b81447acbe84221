#include "iptables/match.h"

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>

#include <cerrno>

#include "netlink/socket.h"

namespace pointsman::iptables {

namespace {

/// Asks for a match, not for a target.
constexpr std::uint32_t kMatch = 0;

}  // namespace

netlink::Bytes encode_match_request(std::uint32_t sequence, std::uint8_t family, const std::string& name) {
  netlink::MessageWriter writer;
  constexpr std::uint16_t kType = NFNL_SUBSYS_NFT_COMPAT << 8 | NFNL_MSG_COMPAT_GET;
  writer.begin_message(kType, NLM_F_REQUEST | NLM_F_ACK, sequence, family);
  writer.put_string(NFTA_COMPAT_NAME, name);
  writer.put_be32(NFTA_COMPAT_REV, 0);
  writer.put_be32(NFTA_COMPAT_TYPE, kMatch);
  writer.end_message();
  return writer.take();
}

netlink::Result<std::optional<bool>> has_match(std::uint8_t family, const std::string& name) {
  auto socket = netlink::Socket::open();
  if (!socket.ok()) return socket.error();
  const auto answered = socket.value().request(encode_match_request(1, family, name),
                                               [](const netlink::Message&) -> netlink::Status { return netlink::Done{}; });
  if (answered.ok()) return std::optional<bool>(true);
  switch (answered.error().code) {
    case ENOENT:
      return std::optional<bool>(false);
    case EPROTONOSUPPORT:
      // It is there, with other revisions.
      return std::optional<bool>(true);
    case EINVAL:
    case EOPNOTSUPP:
    case EPERM:
      return std::optional<bool>();
    default:
      return answered.error();
  }
}

}  // namespace pointsman::iptables
