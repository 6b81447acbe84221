#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "ipvs/message.h"
#include "netlink/exchange.h"

namespace pointsman::ipvs {

struct ServiceOperation {
  Verb verb = Verb::kNew;
  Service service;
  /// Not read to delete.
  ServiceState state;
};

/// The same for each of some destinations.
struct DestinationsOperation {
  Verb verb = Verb::kNew;
  Service service;
  /// Address and port of each, in network order, one after the other.
  netlink::Bytes endpoints;
  std::uint32_t weight = 0;
};

using Operation = std::variant<ServiceOperation, DestinationsOperation>;

/// The destinations of one service, of its own family, as columns.
struct Destinations {
  netlink::Bytes endpoints;
  std::vector<std::uint32_t> weights;
  std::vector<std::uint32_t> connections;
  netlink::Bytes methods;
  /// 1 where there are bounds on connections.
  netlink::Bytes bounded;
};

/// Does everything in its order and answers what the kernel refused. Loads ip_vs.
netlink::Result<netlink::Applied> apply(const std::vector<Operation>& operations);

// Asking does not load ip_vs: what is not loaded holds nothing. The kernel does not mark interrupted listings.

/// The virtual services of one family in the network namespace.
netlink::Result<std::vector<ListedService>> list_services(std::uint16_t family);
/// For each service; none for one that is not there.
netlink::Result<std::vector<Destinations>> list_destinations(const std::vector<Service>& services);
/// Numbers for what the two answer, connections apart: of all services of a family, and for each of some services, 0 for one without destinations. For who
/// only wants to know whether something changed.
netlink::Result<double> services_digest(std::uint16_t family);
netlink::Result<std::vector<double>> destinations_digests(const std::vector<Service>& services);
/// Nothing when ip_vs is not loaded.
netlink::Result<std::optional<Timeouts>> timeouts();
/// 0 keeps one. Loads ip_vs.
netlink::Result<bool> set_timeouts(const Timeouts& timeouts);

}  // namespace pointsman::ipvs
