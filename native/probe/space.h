#pragma once

#include <functional>
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
/// descriptor or a socket in it is open, however the process ends; the answer is a descriptor.
netlink::Result<int> open_space(const std::string& link, const std::vector<WireAddress>& addresses);

/// Runs `work` on a thread of its own that is in the namespace; -1: in this one. Its failure to get there becomes the answer.
netlink::Status run_inside(int space, const std::function<netlink::Status()>& work);

}  // namespace pointsman::probe
