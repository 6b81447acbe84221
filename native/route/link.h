#pragma once

#include <optional>
#include <string>
#include <vector>

#include "netlink/exchange.h"
#include "netlink/socket.h"

namespace pointsman::route {

/// The addresses of one family to add to a link, or to delete from it.
struct AddressOperation {
  bool add = true;
  /// 4 or 16 bytes, the length of each address.
  std::size_t length = 4;
  /// One after the other.
  netlink::Bytes addresses;
};

/// A link with its addresses, each family's one after the other.
struct LinkAddresses {
  std::string link;
  netlink::Bytes ipv4;
  netlink::Bytes ipv6;
};

/// The addresses of a link of this network namespace, whether it is up or down; null when there is no such link.
netlink::Result<std::optional<std::vector<netlink::Bytes>>> link_addresses(netlink::Socket& socket, const std::string& name);
/// The addresses of all links that have any.
netlink::Result<std::vector<LinkAddresses>> all_addresses(netlink::Socket& socket);

/// False: there is a link of that name.
netlink::Result<bool> ensure_dummy(netlink::Socket& socket, const std::string& name);
/// False: there is no such link.
netlink::Result<bool> delete_link(netlink::Socket& socket, const std::string& name);
/// Does everything in its order and answers what the kernel refused. ENODEV when there is no such link.
netlink::Result<netlink::Applied> apply_addresses(netlink::Socket& socket, const std::string& name,
                                                  const std::vector<AddressOperation>& operations);

}  // namespace pointsman::route
