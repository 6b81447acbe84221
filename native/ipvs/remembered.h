#pragma once

#include <optional>
#include <string_view>

#include "ipvs/message.h"
#include "netlink/result.h"

namespace pointsman::ipvs {

/// Where persistence sends a client of a service, by a line of /proc/net/ip_vs_conn: address and port in network order, the port 0 where the line has
/// none; nothing when it is about something else. What persistence remembers is an entry whose client has port 0.
std::optional<netlink::Bytes> remembered_by(std::string_view line, const Service& service, netlink::ByteView client);

/// The same of all connections; empty when none remembers the client. EFBIG: there are so many that finding out would keep the kernel busy for seconds.
netlink::Result<netlink::Bytes> remembered(const Service& service, netlink::ByteView client);

}  // namespace pointsman::ipvs
