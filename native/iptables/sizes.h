#pragma once

#include <string>

#include "iptables/operation.h"
#include "netlink/result.h"

namespace pointsman::iptables {

/// What the kernel reports of each legacy table of a family that is in use: numbers of rules and bytes, and where its built-in chains begin and end. Errno
/// where it does not report them.
netlink::Result<std::string, int> table_sizes(Family family);

}  // namespace pointsman::iptables
