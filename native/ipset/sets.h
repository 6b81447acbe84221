#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ipset/message.h"
#include "netlink/exchange.h"

namespace pointsman::ipset {

struct Destruction {
  std::string name;
};

struct Flush {
  std::string name;
};

using Operation = std::variant<Creation, Destruction, Flush, ElementsOperation>;

/// Does everything in its order and answers what the kernel refused. Loads ip_set and the types.
netlink::Result<netlink::Applied> apply(netlink::Socket& socket, const std::vector<Operation>& operations);

// Asking does not load ip_set: what is not loaded holds nothing.

/// The names of all sets of the network namespace.
netlink::Result<std::vector<std::string>> set_names(netlink::Socket& socket);
/// For each name; nothing for one that there is not.
netlink::Result<std::vector<std::optional<Listing>>> list_sets(netlink::Socket& socket, const std::vector<std::string>& names);
/// For each name a number for what would be listed of it, references apart: 0 for one that there is not. For who only wants to know whether something changed.
netlink::Result<std::vector<double>> set_digests(netlink::Socket& socket, const std::vector<std::string>& names, Extent extent);

}  // namespace pointsman::ipset
