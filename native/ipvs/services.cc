#include "ipvs/services.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "netlink/text.h"

namespace pointsman::ipvs {

namespace {

using netlink::ByteView;
using netlink::Done;
using netlink::Error;
using netlink::Message;
using netlink::MessageWriter;
using netlink::Refusal;
using netlink::Result;
using netlink::Socket;
using netlink::Status;
using netlink::Step;

/// There while ip_vs is loaded.
constexpr const char* kServices = "/proc/net/ip_vs";
/// Of requests that are alone on their way.
constexpr std::uint32_t kSequence = 1;

bool is_loaded() { return access(kServices, F_OK) == 0; }

std::size_t endpoint_length(const Service& service) { return service.family == AF_INET ? 6 : 18; }

/// A socket and the number of the family, which asking for loads ip_vs.
struct Channel {
  Socket socket;
  std::uint16_t type;

  static Result<Channel> open() {
    auto socket = Socket::open(NETLINK_GENERIC);
    if (!socket.ok()) return socket.error();
    std::optional<std::uint16_t> type;
    const auto answered = socket.value().request(encode_family_request(kSequence), [&](const Message& message) -> Status {
      const auto decoded = decode_family(message);
      if (!decoded.ok()) return decoded.error();
      type = decoded.value();
      return Done{};
    });
    if (!answered.ok()) return explained(answered.error());
    if (!type) return netlink::decode_error("no number for the family IPVS");
    return Channel{std::move(socket.value()), *type};
  }

 private:
  static Error explained(Error error) {
    if (error.code == ENOENT) error.message = "the kernel has no ip_vs, or cannot load it";
    return error;
  }
};

ByteView endpoint_of(const DestinationsOperation& operation, std::uint32_t element) {
  const std::size_t length = endpoint_length(operation.service);
  return ByteView(operation.endpoints).subspan(element * length, length);
}

std::string word(Verb verb) { return verb == Verb::kNew ? "new" : verb == Verb::kSet ? "set" : "delete"; }

Refusal refusal_of(const Operation& operation, const Step& step) {
  Refusal refusal{step.operation, {}, {}, {}};
  if (const auto* one = std::get_if<ServiceOperation>(&operation)) {
    refusal.object = word(one->verb) + " virtual service " + describe(one->service);
    if (one->verb != Verb::kDelete) refusal.object += " scheduler " + one->state.scheduler;
  } else if (const auto* some = std::get_if<DestinationsOperation>(&operation)) {
    const ByteView endpoint = endpoint_of(*some, step.element);
    const std::uint16_t port = netlink::load_be16(endpoint.last(sizeof port).data());
    refusal.element = step.element;
    refusal.object = word(some->verb) + " destination " + netlink::print_endpoint(endpoint.first(endpoint.size() - sizeof port), port) +
                     " of " + describe(some->service);
  }
  return refusal;
}

void append(Destinations& columns, const Destination& destination) {
  if (destination.address.empty()) return;
  columns.endpoints.insert(columns.endpoints.end(), destination.address.begin(), destination.address.end());
  columns.endpoints.push_back(static_cast<std::uint8_t>(destination.port >> 8));
  columns.endpoints.push_back(static_cast<std::uint8_t>(destination.port));
  columns.weights.push_back(destination.weight);
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  columns.connections.push_back(static_cast<std::uint32_t>(std::min(destination.connections, kMost)));
  columns.methods.push_back(static_cast<std::uint8_t>(destination.method));
}

Result<Destinations> destinations_of(Channel& channel, const Service& service) {
  Destinations columns;
  const auto dumped = channel.socket.dump_consistent(
      encode_destinations(channel.type, kSequence, service), [&] { columns = {}; }, [&](const Message& message) -> Status {
        const auto destination = decode_destination(message, service.family);
        if (!destination.ok()) return destination.error();
        append(columns, destination.value());
        return Done{};
      });
  if (!dumped.ok()) return dumped.error();
  return columns;
}

}  // namespace

Result<std::vector<Refusal>> apply(const std::vector<Operation>& operations) {
  if (operations.empty()) return std::vector<Refusal>();
  auto channel = Channel::open();
  if (!channel.ok()) return channel.error();
  const auto count = [&](std::size_t operation) -> std::size_t {
    const auto* some = std::get_if<DestinationsOperation>(&operations[operation]);
    return some == nullptr ? 1 : some->endpoints.size() / endpoint_length(some->service);
  };
  const auto encode = [&](MessageWriter& writer, const Step& step, std::uint32_t sequence) {
    const std::uint16_t type = channel.value().type;
    const Operation& operation = operations[step.operation];
    if (const auto* one = std::get_if<ServiceOperation>(&operation)) {
      encode_service(writer, type, sequence, one->verb, one->service, one->state);
    } else if (const auto* some = std::get_if<DestinationsOperation>(&operation)) {
      encode_destination(writer, type, sequence, some->verb, some->service, endpoint_of(*some, step.element), some->weight);
    }
  };
  return netlink::exchange_steps(channel.value().socket, operations.size(), count, encode,
                                 [&](const Step& step) { return refusal_of(operations[step.operation], step); });
}

Result<std::vector<ListedService>> list_services(std::uint16_t family) {
  std::vector<ListedService> services;
  if (!is_loaded()) return services;
  auto channel = Channel::open();
  if (!channel.ok()) return channel.error();
  const auto dumped = channel.value().socket.dump_consistent(
      encode_list(channel.value().type, kSequence), [&] { services.clear(); }, [&](const Message& message) -> Status {
        auto listed = decode_service(message);
        if (!listed.ok()) return listed.error();
        if (listed.value().service.family == family) services.push_back(std::move(listed.value()));
        return Done{};
      });
  if (!dumped.ok()) return dumped.error();
  return services;
}

Result<std::vector<Destinations>> list_destinations(const std::vector<Service>& services) {
  std::vector<Destinations> lists(services.size());
  if (!is_loaded() || services.empty()) return lists;
  auto channel = Channel::open();
  if (!channel.ok()) return channel.error();
  for (std::size_t index = 0; index < services.size(); ++index) {
    auto listed = destinations_of(channel.value(), services[index]);
    if (!listed.ok()) return listed.error();
    lists[index] = std::move(listed.value());
  }
  return lists;
}

Result<std::optional<Timeouts>> timeouts() {
  std::optional<Timeouts> found;
  if (!is_loaded()) return found;
  auto channel = Channel::open();
  if (!channel.ok()) return channel.error();
  const auto asked =
      channel.value().socket.request(encode_get_timeouts(channel.value().type, kSequence), [&](const Message& message) -> Status {
        const auto decoded = decode_timeouts(message);
        if (!decoded.ok()) return decoded.error();
        found = decoded.value();
        return Done{};
      });
  if (!asked.ok()) return asked.error();
  if (!found) return netlink::decode_error("ip_vs did not tell its timeouts");
  return found;
}

Result<bool> set_timeouts(const Timeouts& timeouts) {
  auto channel = Channel::open();
  if (!channel.ok()) return channel.error();
  const auto set = channel.value().socket.request(encode_set_timeouts(channel.value().type, kSequence, timeouts),
                                                  [](const Message&) -> Status { return Done{}; });
  if (!set.ok()) return set.error();
  return true;
}

}  // namespace pointsman::ipvs
