#include <net/if.h>

#include <limits>

#include "addon/argument.h"
#include "addon/functions.h"
#include "addon/linux/simple_call.h"
#include "addon/linux/subsystems.h"
#include "addon/platform.h"
#include "probe/attempt.h"
#include "probe/space.h"

namespace pointsman::addon {

namespace {

constexpr const char* kSpace = "probe space";
constexpr const char* kLease = "probe lease";
constexpr const char* kReach = "probe reach";
constexpr const char* kListen = "probe listen";
constexpr std::uint32_t kLongestMs = 60'000;
constexpr std::uint32_t kLongestLeaseSeconds = 600;
constexpr std::size_t kMostPayload = 512;

Napi::Value undefined_value(Napi::Env env, const netlink::Done&) { return env.Undefined(); }

Napi::Value descriptor_value(Napi::Env env, const int& descriptor) { return Napi::Number::New(env, descriptor); }

Napi::Value outcome_value(Napi::Env env, const probe::Outcome& outcome) {
  Napi::Object value = Napi::Object::New(env);
  value.Set("error", outcome.error == 0 ? env.Null() : Napi::Value(Napi::String::New(env, error_name(outcome.error))));
  value.Set("answer", to_uint8_array(env, outcome.answer));
  value.Set("localPort", Napi::Number::New(env, outcome.local_port));
  value.Set("milliseconds", Napi::Number::New(env, outcome.milliseconds));
  return value;
}

Bytes address_argument(const Argument& at) {
  Bytes address = at.bytes();
  if (address.size() != 4 && address.size() != 16) at.expect("4 or 16 bytes");
  return address;
}

probe::Place place_argument(const Argument& at) {
  probe::Place place;
  place.udp = at.member("protocol").either("TCP", "UDP");
  place.address = address_argument(at.member("address"));
  place.port = static_cast<std::uint16_t>(at.member("port").integer(1, std::numeric_limits<std::uint16_t>::max()));
  return place;
}

/// Null: the namespace that the process is in.
int space_argument(const Argument& at) {
  return at.is_null() ? -1 : at.descriptor();
}

Napi::Value probe_space(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const std::string link = Argument(info[0], "link", misuse).text(1, IF_NAMESIZE - 1);
  std::vector<probe::WireAddress> addresses;
  for (const Argument& each : Argument(info[1], "addresses", misuse).items()) {
    probe::WireAddress address{address_argument(each.member("inside")), address_argument(each.member("outside")), 0};
    if (address.inside.size() != address.outside.size()) each.expect("two addresses of one family");
    address.prefix = static_cast<std::uint8_t>(each.member("prefix").integer(1, 128));
    addresses.push_back(std::move(address));
  }
  std::optional<std::string> bridge;
  if (const Argument given(info[2], "bridge", misuse); !given.is_null()) bridge = given.text(1, IF_NAMESIZE - 1);
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<int>::start(
      info, kSpace, [link, addresses = std::move(addresses), bridge] { return probe::open_space(link, addresses, bridge); }, descriptor_value);
}

Napi::Value probe_lease(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const std::string link = Argument(info[0], "link", misuse).text(1, IF_NAMESIZE - 1);
  const netlink::Bytes address = address_argument(Argument(info[1], "address", misuse));
  const auto prefix = static_cast<std::uint8_t>(Argument(info[2], "prefix", misuse).integer(1, 128));
  const std::uint32_t seconds = Argument(info[3], "seconds", misuse).integer(0, kLongestLeaseSeconds);
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<netlink::Done>::start(
      info, kLease, [link, address, prefix, seconds] { return probe::lease_address(link, address, prefix, seconds); }, undefined_value);
}

Napi::Value probe_reach(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const int space = space_argument(Argument(info[0], "space", misuse));
  const Argument at(info[1], "attempt", misuse);
  probe::Attempt attempt;
  attempt.to = place_argument(at);
  const Argument payload = at.member("payload");
  attempt.payload = payload.bytes();
  if (attempt.payload.size() > kMostPayload) payload.expect("at most 512 bytes");
  attempt.reads = at.member("reads").flag();
  attempt.timeout_ms = at.member("timeoutMs").integer(1, kLongestMs);
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<probe::Outcome>::start(
      info, kReach, [space, attempt = std::move(attempt)] { return probe::try_to_reach(space, attempt); }, outcome_value);
}

Napi::Value probe_listen(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const int space = space_argument(Argument(info[0], "space", misuse));
  const probe::Place place = place_argument(Argument(info[1], "place", misuse));
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<int>::start(info, kListen, [space, place] { return probe::wait_for_clients(space, place); }, descriptor_value);
}

}  // namespace

Napi::Object probe_functions(Napi::Env env) {
  Functions functions(env);
  functions.add<probe_space>("probeSpace");
  functions.add<probe_lease>("probeLease");
  functions.add<probe_reach>("probeReach");
  functions.add<probe_listen>("probeListen");
  return functions.object();
}

}  // namespace pointsman::addon
