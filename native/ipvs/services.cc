#include "ipvs/services.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "netlink/digest.h"
#include "netlink/text.h"

namespace pointsman::ipvs {

namespace {

using netlink::Applied;
using netlink::ByteView;
using netlink::Digest;
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
/// The sequence number of requests that are sent alone.
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

/// What is not loaded holds none.
Status each_service(std::uint16_t family, const std::function<void()>& restart, const std::function<void(ListedService&&)>& on_service) {
  if (!is_loaded()) return Done{};
  auto channel = Channel::open();
  if (!channel.ok()) return channel.error();
  return channel.value().socket.dump_consistent(
      encode_list(channel.value().type, kSequence), restart, [&](const Message& message) -> Status {
        auto listed = decode_service(message);
        if (!listed.ok()) return listed.error();
        if (listed.value().service.family == family) on_service(std::move(listed.value()));
        return Done{};
      });
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
  columns.bounded.push_back(destination.most != 0 || destination.least != 0);
}

Status each_destination(Channel& channel, const Service& service, const std::function<void()>& restart,
                        const std::function<void(const Destination&)>& on_destination) {
  return channel.socket.dump_consistent(
      encode_destinations(channel.type, kSequence, service), restart, [&](const Message& message) -> Status {
        const auto destination = decode_destination(message, service.family);
        if (!destination.ok()) return destination.error();
        on_destination(destination.value());
        return Done{};
      });
}

Result<Destinations> destinations_of(Channel& channel, const Service& service) {
  Destinations columns;
  const auto dumped = each_destination(
      channel, service, [&] { columns = {}; }, [&](const Destination& destination) { append(columns, destination); });
  if (!dumped.ok()) return dumped.error();
  return columns;
}

Result<double> digest_of(Channel& channel, const Service& service) {
  Digest digest;
  bool any = false;
  const auto restart = [&] {
    digest = {};
    any = false;
  };
  const auto dumped = each_destination(channel, service, restart, [&](const Destination& destination) {
    if (destination.address.empty()) return;
    any = true;
    digest.add(Digest::Record().bytes(destination.address).number(destination.port).number(destination.weight).number(destination.method)
                   .number(destination.most).number(destination.least));
  });
  if (!dumped.ok()) return dumped.error();
  return any ? static_cast<double>(digest.value()) : 0;
}

/// One answer for each service; where ip_vs is not loaded, as they are at first.
template <typename Answer>
Result<std::vector<Answer>> for_each_service(const std::vector<Service>& services, Result<Answer> (*ask)(Channel&, const Service&)) {
  std::vector<Answer> answers(services.size());
  if (!is_loaded() || services.empty()) return answers;
  auto channel = Channel::open();
  if (!channel.ok()) return channel.error();
  for (std::size_t index = 0; index < services.size(); ++index) {
    auto answer = ask(channel.value(), services[index]);
    if (!answer.ok()) return answer.error();
    answers[index] = std::move(answer.value());
  }
  return answers;
}

}  // namespace

Result<Applied> apply(const std::vector<Operation>& operations) {
  if (operations.empty()) return Applied{};
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
  const auto listed =
      each_service(family, [&] { services.clear(); }, [&](ListedService&& service) { services.push_back(std::move(service)); });
  if (!listed.ok()) return listed.error();
  return services;
}

Result<double> services_digest(std::uint16_t family) {
  Digest digest;
  const auto listed = each_service(family, [&] { digest = {}; }, [&](ListedService&& listed) {
    const auto& [service, state] = listed;
    digest.add(Digest::Record().bytes(service.address).number(service.port).number(service.protocol).number(service.mark)
                   .bytes(state.scheduler).number(state.flags).number(state.timeout).number(state.prefix_length));
  });
  if (!listed.ok()) return listed.error();
  return static_cast<double>(digest.value());
}

Result<std::vector<Destinations>> list_destinations(const std::vector<Service>& services) {
  return for_each_service<Destinations>(services, destinations_of);
}

Result<std::vector<double>> destinations_digests(const std::vector<Service>& services) {
  return for_each_service<double>(services, digest_of);
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
