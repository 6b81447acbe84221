#pragma once

#include <optional>
#include <string>
#include <vector>

#include "netlink/socket.h"

namespace pointsman::route {

/// A request for all addresses (NLM_F_DUMP), and one to delete a link.
netlink::Bytes encode_addresses(std::uint32_t sequence);
netlink::Bytes encode_delete_link(std::uint32_t sequence, const std::string& name);
/// The address in an answer to the former, in network order; empty when it is another link's.
netlink::Result<netlink::Bytes> decode_address(const netlink::Message& message, std::uint32_t link);

/// The addresses of a link of this network namespace, whether it is up or down; null when there is no such link.
netlink::Result<std::optional<std::vector<netlink::Bytes>>> link_addresses(const std::string& name);
/// False: there is no such link.
netlink::Result<bool> delete_link(const std::string& name);

}  // namespace pointsman::route
