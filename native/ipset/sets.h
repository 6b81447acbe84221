#pragma once

#include <string>
#include <vector>

#include "netlink/socket.h"

namespace pointsman::ipset {

/// A request for the names of all sets (NLM_F_DUMP), and one to destroy a set.
netlink::Bytes encode_list(std::uint32_t sequence);
netlink::Bytes encode_destroy(std::uint32_t sequence, const std::string& name);
/// The name in an answer to the former.
netlink::Result<std::string> decode_name(const netlink::Message& message);

/// The names of all sets of the network namespace; none where the kernel's part is not loaded, which asking would load.
netlink::Result<std::vector<std::string>> set_names();
/// False: there is no such set. EBUSY: a rule or another set uses it.
netlink::Result<bool> destroy_set(const std::string& name);

}  // namespace pointsman::ipset
