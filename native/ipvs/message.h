#pragma once

#include <string>

#include "netlink/answer.h"
#include "netlink/message_writer.h"

namespace pointsman::ipvs {

// Messages of the generic netlink family IPVS, whose number the kernel assigns (`type`).

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

/// What can be changed about one.
struct ServiceState {
  std::string scheduler;
  /// IP_VS_SVC_F_*, without those of the kernel's own.
  std::uint32_t flags = 0;
  /// The timeout of persistence, in seconds.
  std::uint32_t timeout = 0;
  /// Bits of a client's address that persistence looks at.
  std::uint32_t prefix_length = 0;
};

struct ListedService {
  Service service;
  ServiceState state;
};

/// A destination as the kernel reports it.
struct Destination {
  /// An address of its service's family; empty when it is of the other.
  netlink::Bytes address;
  std::uint16_t port = 0;
  std::uint32_t weight = 0;
  /// IP_VS_CONN_F_FWD_MASK.
  std::uint32_t method = 0;
  /// Active and inactive ones.
  std::uint64_t connections = 0;
  /// Bounds on them, above and below; 0: none.
  std::uint32_t most = 0;
  std::uint32_t least = 0;
};

/// For connections without traffic, in seconds.
struct Timeouts {
  std::uint32_t tcp = 0;
  std::uint32_t tcp_fin = 0;
  std::uint32_t udp = 0;
};

/// What is done to a service or a destination. The values are what the commands count.
enum class Verb { kNew, kSet, kDelete };

netlink::Bytes encode_family_request(std::uint32_t sequence);
netlink::Result<std::uint16_t> decode_family(const netlink::Message& message);

/// Asks for all services, or for the destinations of one (NLM_F_DUMP).
netlink::Bytes encode_list(std::uint16_t type, std::uint32_t sequence);
netlink::Bytes encode_destinations(std::uint16_t type, std::uint32_t sequence, const Service& service);
netlink::Result<ListedService> decode_service(const netlink::Message& message);
netlink::Result<Destination> decode_destination(const netlink::Message& message, std::uint16_t family);

/// With NLM_F_ACK. `state` is not read to delete.
void encode_service(netlink::MessageWriter& writer, std::uint16_t type, std::uint32_t sequence, Verb verb, const Service& service,
                    const ServiceState& state);
/// `endpoint`: address and port, in network order.
void encode_destination(netlink::MessageWriter& writer, std::uint16_t type, std::uint32_t sequence, Verb verb, const Service& service,
                        netlink::ByteView endpoint, std::uint32_t weight);

netlink::Bytes encode_get_timeouts(std::uint16_t type, std::uint32_t sequence);
netlink::Bytes encode_set_timeouts(std::uint16_t type, std::uint32_t sequence, const Timeouts& timeouts);
netlink::Result<Timeouts> decode_timeouts(const netlink::Message& message);

/// `tcp 10.96.0.1:80`, or `mark 7`.
std::string describe(const Service& service);

}  // namespace pointsman::ipvs
