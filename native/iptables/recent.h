#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "iptables/programs.h"
#include "netlink/byte_order.h"
#include "netlink/result.h"

namespace pointsman::iptables {

/// An address as the kernel prints it in lists of `recent`: `10.0.0.1`, `fd00:0000:…` with all its digits.
std::string recent_address(netlink::ByteView address);

/// Whether a list shows that the address was seen at or after a moment, in jiffies.
/// @param list lines of a file in /proc/net/xt_recent: `src=10.0.0.1 ttl: 64 last_seen: 4295421819 oldest_pkt: 1 4295421819`.
bool seen_since(std::istream& list, const std::string& address, std::uint64_t moment);

/// The first of the `recent` lists that saw the address within so many seconds, as `-m recent --update --seconds` would find it; nothing when none
/// did. A list that does not exist saw no source.
netlink::Result<std::optional<std::uint32_t>, Failure> first_remembering(const std::vector<std::string>& lists,
                                                                         netlink::ByteView address, std::uint32_t seconds);

}  // namespace pointsman::iptables
