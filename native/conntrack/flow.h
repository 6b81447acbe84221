#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "netlink/answer.h"
#include "netlink/byte_order.h"
#include "netlink/message_writer.h"
#include "netlink/result.h"

namespace pointsman::conntrack {

enum class Family : std::uint8_t {
  kIPv4 = 2,   // NFPROTO_IPV4
  kIPv6 = 10,  // NFPROTO_IPV6
};

constexpr std::size_t address_length(Family family) { return family == Family::kIPv4 ? 4 : 16; }

/// Bytes of a flow record; see FLOW_RECORD in src/native/contract.ts for what is where.
constexpr std::size_t record_length(Family family) { return 4 * address_length(family) + 20; }

/// Which flows to list. An address or port is that of the original destination.
struct FlowFilter {
  Family family = Family::kIPv4;
  /// IANA number.
  std::uint8_t protocol = 0;
  /// The family's address length of bytes.
  std::optional<netlink::Bytes> destination;
  std::optional<std::uint16_t> port;
  /// Only flows to which nothing was replied.
  bool unanswered = false;
  /// Only flows that were answered, and by another address or port than the one asked for.
  bool translated = false;
  /// Only flows whose replies come from one of these addresses: whole addresses of the family in ascending order.
  std::optional<netlink::Bytes> reply_sources;
};

/// An IPCTNL_MSG_CT_GET dump of the family. With `in_kernel` the filter travels along (CTA_FILTER, Linux 5.9; CTA_STATUS, later) as
/// far as kernels are right about it; older ones ignore it, and ports of SCTP none compares, so answers are filtered again when they are
/// decoded.
netlink::Bytes encode_list(const FlowFilter& filter, std::uint32_t sequence, bool in_kernel);

/// Appends the record of the flow in `message` to `records` when it passes the filter. Flows without ports pass none. A decode error when
/// the message is not well formed.
netlink::Status decode_flow(const netlink::Message& message, const FlowFilter& filter, netlink::Bytes& records);

/// An IPCTNL_MSG_CT_DELETE of one record: original tuple, zone and id, so that the kernel leaves a flow alone which took the tuple over
/// since the listing.
void encode_delete(netlink::MessageWriter& writer, std::uint32_t sequence, Family family, netlink::ByteView record);

/// What one direction of a flow has carried so far: 0 where the kernel did not count when the flow began.
struct Carried {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
};

/// Where a flow of any family was addressed to and where its replies come from; see FLOW_WAY in src/native/conntrack.ts for what is where.
using FlowWay = std::array<std::uint8_t, 40>;

/// A flow that went elsewhere than where it was addressed to.
struct TranslatedFlow {
  /// The same in everything that the kernel reports of the flow; another flow has it only by a hash collision.
  std::uint64_t identity = 0;
  FlowWay way{};
  Carried request;
  Carried reply;
};

/// An IPCTNL_MSG_CT_GET dump of all families.
netlink::Bytes encode_list_all(std::uint32_t sequence);

/// The flow of a listing, or of a notification of its end; nothing for one that was not translated or has no ports.
netlink::Result<std::optional<TranslatedFlow>> decode_translated(const netlink::Message& message);

/// Whether it is a notification that a flow has ended.
bool is_end(const netlink::Message& message);

/// `udp 10.244.0.7:40000 > 10.96.0.10:53, replies from 10.244.1.10:53`, for error messages.
std::string describe(Family family, netlink::ByteView record);

}  // namespace pointsman::conntrack
