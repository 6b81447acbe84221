#pragma once

#include <cstddef>
#include <optional>

#include "conntrack/flow.h"
#include "netlink/result.h"

namespace pointsman::conntrack {

/// A segment that seems to come from what the flow of `record` is addressed to, for the flow's client: an IP packet with a TCP header.
///
/// It is a SYN with an ACK. A client whose connection is established answers any SYN with an ACK of its true sequence numbers, and
/// the connection goes on as if nothing had come (RFC 5961, section 4.2; Linux 3.6). To conntrack a SYN with an ACK that no flow
/// began is invalid, so it makes no flow here. Where the client has a firewall it is a repetition and passes; a bare SYN is not.
netlink::Bytes encode_challenge(Family family, netlink::ByteView record, std::uint32_t sequence);

struct Challenges {
  std::size_t sent = 0;
  /// Why the first of the others was not; nothing when there are no others.
  std::optional<netlink::Error> failure;
};

/// Sends a challenge to the client of each TCP flow. `records` holds a whole number of records. Waits for nothing.
netlink::Result<Challenges> send_challenges(Family family, netlink::ByteView records);

}  // namespace pointsman::conntrack
