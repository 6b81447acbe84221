#include <linux/ip_vs.h>
#include <sys/socket.h>

#include "addon/argument.h"
#include "addon/functions.h"
#include "addon/linux/applied.h"
#include "addon/linux/simple_call.h"
#include "addon/linux/subsystems.h"
#include "addon/values.h"
#include "ipvs/remembered.h"
#include "ipvs/services.h"

namespace pointsman::addon {

namespace {

using Services = std::vector<ipvs::ListedService>;
using DestinationLists = std::vector<ipvs::Destinations>;

constexpr const char* kApplyServices = "ipvs apply";
constexpr const char* kServices = "ipvs services";
constexpr const char* kDestinations = "ipvs destinations";
constexpr const char* kServicesDigest = "ipvs services digest";
constexpr const char* kDestinationsDigests = "ipvs destinations digests";
constexpr const char* kRemembered = "ipvs remembered";
constexpr const char* kTimeouts = "ipvs timeouts";
constexpr const char* kSetTimeouts = "ipvs set timeouts";
/// Beyond it the kernel, which counts in ticks, overflows.
constexpr std::uint32_t kMaxSeconds = INT32_MAX / 1000;

Napi::Value to_applied_services(Napi::Env env, const netlink::Applied& applied) { return applied_value(env, applied, kApplyServices); }

Napi::Value to_services(Napi::Env env, const Services& services) {
  const Napi::Array array = Napi::Array::New(env, services.size());
  for (std::uint32_t index = 0; index < services.size(); ++index) {
    const auto& [service, state] = services[index];
    const Napi::HandleScope scope(env);
    Napi::Object value = Napi::Object::New(env);
    value.Set("protocol", Napi::Number::New(env, service.protocol));
    value.Set("family", Napi::String::New(env, service.family == AF_INET ? "IPv4" : "IPv6"));
    value.Set("address", service.address.empty() ? env.Null() : to_uint8_array(env, service.address));
    value.Set("port", Napi::Number::New(env, service.port));
    value.Set("mark", Napi::Number::New(env, service.mark));
    value.Set("scheduler", Napi::String::New(env, state.scheduler));
    value.Set("flags", Napi::Number::New(env, state.flags));
    value.Set("timeoutSeconds", Napi::Number::New(env, state.timeout));
    value.Set("prefixLength", Napi::Number::New(env, state.prefix_length));
    array.Set(index, value);
  }
  return array;
}

Napi::Value to_uint32_array(Napi::Env env, const std::vector<std::uint32_t>& numbers) {
  Napi::Uint32Array array = Napi::Uint32Array::New(env, numbers.size());
  if (!numbers.empty() && !env.IsExceptionPending()) std::copy(numbers.begin(), numbers.end(), array.Data());
  return array;
}

Napi::Value to_destinations(Napi::Env env, const DestinationLists& lists) {
  const Napi::Array array = Napi::Array::New(env, lists.size());
  for (std::uint32_t index = 0; index < lists.size(); ++index) {
    const Napi::HandleScope scope(env);
    Napi::Object value = Napi::Object::New(env);
    value.Set("endpoints", to_uint8_array(env, lists[index].endpoints));
    value.Set("weights", to_uint32_array(env, lists[index].weights));
    value.Set("connections", to_uint32_array(env, lists[index].connections));
    value.Set("methods", to_uint8_array(env, lists[index].methods));
    value.Set("bounded", to_uint8_array(env, lists[index].bounded));
    array.Set(index, value);
  }
  return array;
}

Napi::Value to_timeouts(Napi::Env env, const std::optional<ipvs::Timeouts>& timeouts) {
  if (!timeouts) return env.Null();
  Napi::Object value = Napi::Object::New(env);
  value.Set("tcp", Napi::Number::New(env, timeouts->tcp));
  value.Set("tcpFin", Napi::Number::New(env, timeouts->tcp_fin));
  value.Set("udp", Napi::Number::New(env, timeouts->udp));
  return value;
}

Napi::Value to_number(Napi::Env env, const double& number) { return Napi::Number::New(env, number); }

Napi::Value to_endpoint(Napi::Env env, const netlink::Bytes& endpoint) {
  return endpoint.empty() ? env.Null() : to_uint8_array(env, endpoint);
}

Napi::Value nothing(Napi::Env env, const bool&) { return env.Undefined(); }

ipvs::Service service_argument(const Argument& at) {
  ipvs::Service service;
  const bool wide = at.member("family").either("IPv4", "IPv6");
  service.family = wide ? AF_INET6 : AF_INET;
  service.protocol = static_cast<std::uint16_t>(at.member("protocol").integer(0, 255));
  const Argument address = at.member("address");
  if (!address.is_null()) service.address = address.bytes(wide ? 16 : 4, "an address of the family");
  service.port = static_cast<std::uint16_t>(at.member("port").integer(0, 65535));
  service.mark = at.member("mark").integer(address.is_null() ? 1 : 0, address.is_null() ? UINT32_MAX : 0);
  return service;
}

ipvs::ServiceState state_argument(const Argument& at, std::uint16_t family) {
  constexpr std::uint32_t kFlags = 0x3f & ~IP_VS_SVC_F_HASHED;
  ipvs::ServiceState state;
  // ip_vs keeps names of at most 16 bytes, and a NUL.
  state.scheduler = at.member("scheduler").text(1, 15);
  state.flags = at.member("flags").integer(0, kFlags);
  state.timeout = at.member("timeoutSeconds").integer(0, kMaxSeconds);
  // IPv6 knows no persistence of all clients together.
  state.prefix_length = at.member("prefixLength").integer(family == AF_INET ? 0 : 1, family == AF_INET ? 32 : 128);
  return state;
}

netlink::Bytes endpoints_argument(const Argument& at, std::uint16_t family) {
  const std::size_t length = family == AF_INET ? 6 : 18;
  netlink::Bytes endpoints = at.bytes();
  if (endpoints.size() % length != 0) at.expect("whole endpoints of " + std::to_string(length) + " bytes");
  return endpoints;
}

ipvs::Operation service_operation_argument(const Argument& at) {
  const bool destinations = at.member("type").either("service", "destinations");
  const auto verb = static_cast<ipvs::Verb>(at.member("verb").word({"new", "set", "delete"}));
  ipvs::Service service = service_argument(at.member("service"));
  if (destinations) {
    netlink::Bytes endpoints = endpoints_argument(at.member("endpoints"), service.family);
    return ipvs::DestinationsOperation{verb, std::move(service), std::move(endpoints), at.member("weight").integer(0, INT32_MAX)};
  }
  const Argument state = at.member("state");
  if (verb != ipvs::Verb::kDelete) {
    ipvs::ServiceState wanted = state_argument(state, service.family);
    return ipvs::ServiceOperation{verb, std::move(service), std::move(wanted)};
  }
  if (!state.is_null()) state.expect("null");
  return ipvs::ServiceOperation{verb, std::move(service), {}};
}

Napi::Value ipvs_apply(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  std::vector<ipvs::Operation> operations;
  for (const Argument& each : Argument(info[0], "operations", misuse).items()) {
    const Napi::HandleScope scope(info.Env());
    operations.push_back(service_operation_argument(each));
  }
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<netlink::Applied>::start(info, kApplyServices, [operations = std::move(operations)] { return ipvs::apply(operations); }, to_applied_services);
}

std::uint16_t service_family_argument(const Argument& at) { return at.either("IPv4", "IPv6") ? AF_INET6 : AF_INET; }

std::vector<ipvs::Service> services_argument(const Argument& at) {
  std::vector<ipvs::Service> services;
  for (const Argument& each : at.items()) {
    const Napi::HandleScope scope(at.value().Env());
    services.push_back(service_argument(each));
  }
  return services;
}

Napi::Value ipvs_services(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const std::uint16_t family = service_family_argument(Argument(info[0], "family", misuse));
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<Services>::start(info, kServices, [family] { return ipvs::list_services(family); }, to_services);
}

Napi::Value ipvs_destinations(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  std::vector<ipvs::Service> services = services_argument(Argument(info[0], "services", misuse));
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<DestinationLists>::start(
      info, kDestinations, [services = std::move(services)] { return ipvs::list_destinations(services); }, to_destinations);
}

Napi::Value ipvs_services_digest(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const std::uint16_t family = service_family_argument(Argument(info[0], "family", misuse));
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<double>::start(info, kServicesDigest, [family] { return ipvs::services_digest(family); }, to_number);
}

Napi::Value ipvs_destinations_digests(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  std::vector<ipvs::Service> services = services_argument(Argument(info[0], "services", misuse));
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<std::vector<double>>::start(
      info, kDestinationsDigests, [services = std::move(services)] { return ipvs::destinations_digests(services); }, numbers_value);
}

Napi::Value ipvs_remembered(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  ipvs::Service service = service_argument(Argument(info[0], "service", misuse));
  netlink::Bytes client = Argument(info[1], "client", misuse).bytes(service.family == AF_INET ? 4 : 16, "an address of the family");
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<netlink::Bytes>::start(
      info, kRemembered,
      [service = std::move(service), client = std::move(client)] { return ipvs::remembered(service, client); }, to_endpoint);
}

Napi::Value ipvs_timeouts(const Napi::CallbackInfo& info) {
  return SimpleCall<std::optional<ipvs::Timeouts>>::start(info, kTimeouts, ipvs::timeouts, to_timeouts);
}

Napi::Value ipvs_set_timeouts(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const Argument at(info[0], "timeouts", misuse);
  ipvs::Timeouts timeouts;
  timeouts.tcp = at.member("tcp").integer(0, kMaxSeconds);
  timeouts.tcp_fin = at.member("tcpFin").integer(0, kMaxSeconds);
  timeouts.udp = at.member("udp").integer(0, kMaxSeconds);
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<bool>::start(info, kSetTimeouts, [timeouts] { return ipvs::set_timeouts(timeouts); }, nothing);
}

}  // namespace

Napi::Object ipvs_functions(Napi::Env env) {
  Functions functions(env);
  functions.add<ipvs_apply>("ipvsApply");
  functions.add<ipvs_services>("ipvsServices");
  functions.add<ipvs_destinations>("ipvsDestinations");
  functions.add<ipvs_services_digest>("ipvsServicesDigest");
  functions.add<ipvs_destinations_digests>("ipvsDestinationsDigests");
  functions.add<ipvs_remembered>("ipvsRemembered");
  functions.add<ipvs_timeouts>("ipvsTimeouts");
  functions.add<ipvs_set_timeouts>("ipvsSetTimeouts");
  return functions.object();
}

}  // namespace pointsman::addon
