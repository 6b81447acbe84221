#pragma once

#include <string>
#include <vector>

#include "netlink/socket.h"

namespace pointsman::ipvs {

/// A virtual service, by what identifies it.
struct Service {
  /// AF_INET or AF_INET6.
  std::uint16_t family = 0;
  /// IANA number; 0 with `mark` set.
  std::uint16_t protocol = 0;
  /// 4 or 16 bytes; empty with `mark` set.
  netlink::Bytes address;
  std::uint16_t port = 0;
  /// The packet mark that selects its packets, instead of an address; 0: none.
  std::uint32_t mark = 0;
};

struct ListedService {
  Service service;
  /// Of all its destinations, whether active or not.
  std::uint64_t connections = 0;
};

/// Messages of the generic netlink family IPVS, whose number the kernel assigns (`type`).
netlink::Bytes encode_family_request(std::uint32_t sequence);
netlink::Result<std::uint16_t> decode_family(const netlink::Message& message);
netlink::Bytes encode_list(std::uint16_t type, std::uint32_t sequence);
netlink::Result<Service> decode_service(const netlink::Message& message);
netlink::Bytes encode_destinations(std::uint16_t type, std::uint32_t sequence, const Service& service);
/// The connections in one answer to the former.
netlink::Result<std::uint64_t> decode_connections(const netlink::Message& message);
netlink::Bytes encode_delete(std::uint16_t type, std::uint32_t sequence, const Service& service);

/// All virtual services of the network namespace; none where the kernel's ip_vs is not loaded, which asking would load.
netlink::Result<std::vector<ListedService>> list_services();
/// False: there is no such service.
netlink::Result<bool> delete_service(const Service& service);

}  // namespace pointsman::ipvs
