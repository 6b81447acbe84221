#pragma once

#include <optional>
#include <string>

#include "netlink/message_writer.h"
#include "netlink/result.h"

namespace pointsman::iptables {

/// Asks for a match of the x_tables of AF_INET or AF_INET6, as iptables-nft does before it writes a rule with one (nf_tables_compat.h).
netlink::Bytes encode_match_request(std::uint32_t sequence, std::uint8_t family, const std::string& name);

/// Whether the kernel has the match, or can load it, for rules of either flavour; nothing where it cannot be asked. Changes nothing else.
netlink::Result<std::optional<bool>> has_match(std::uint8_t family, const std::string& name);

}  // namespace pointsman::iptables
