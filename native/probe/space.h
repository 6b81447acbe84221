#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "netlink/result.h"
#include "netlink/byte_order.h"

namespace pointsman::probe {

/// One end of a wire as its link has it, and the other.
struct WireAddress {
  /// 4 or 16 bytes, network order.
  netlink::Bytes inside;
  netlink::Bytes outside;
  std::uint8_t prefix = 0;
};

/// A network namespace of its own, joined to this one by a wire whose end here is called `link`, with a default route to it. It lasts as long as a
/// descriptor or a socket in it is open, however the process ends; the answer is a descriptor. With a bridge, that end is a port of it without
/// addresses, and the bridge keeps its own hardware address and MTU.
netlink::Result<int> open_space(const std::string& link, const std::vector<WireAddress>& addresses, const std::optional<std::string>& bridge);

/// Gives a link an address that it does not have. The kernel removes it after so many seconds, whatever becomes of the process; 0: removes it now.
netlink::Status lease_address(const std::string& link, netlink::ByteView address, std::uint8_t prefix, std::uint32_t seconds);

/// Runs `work` on a thread of its own that is in the namespace; -1: in this one. Its failure to get there becomes the answer.
netlink::Status run_inside(int space, const std::function<netlink::Status()>& work);

}  // namespace pointsman::probe
