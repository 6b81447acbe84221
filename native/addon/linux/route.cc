#include <net/if.h>

#include "addon/argument.h"
#include "addon/functions.h"
#include "addon/linux/applied.h"
#include "addon/linux/environment.h"
#include "addon/linux/running_watch.h"
#include "addon/linux/simple_call.h"
#include "addon/linux/subsystems.h"
#include "addon/values.h"
#include "route/link.h"
#include "route/watch.h"

namespace pointsman::addon {

namespace {

using Addresses = std::optional<std::vector<netlink::Bytes>>;
using Links = std::vector<route::LinkAddresses>;

constexpr const char* kLinkAddresses = "link addresses";
constexpr const char* kAllAddresses = "all addresses";
constexpr const char* kEnsureDummy = "link ensure dummy";
constexpr const char* kLinkDelete = "link delete";
constexpr const char* kApplyAddresses = "address apply";
constexpr const char* kWatchRoutes = "route watch";

std::string link_argument(const Argument& at) { return at.text(1, IF_NAMESIZE - 1); }

Napi::Value to_applied_addresses(Napi::Env env, const netlink::Applied& applied) { return applied_value(env, applied, kApplyAddresses); }

Napi::Value to_addresses(Napi::Env env, const Addresses& addresses) {
  if (!addresses) return env.Null();
  const Napi::Array array = Napi::Array::New(env, addresses->size());
  for (std::uint32_t index = 0; index < addresses->size(); ++index) array.Set(index, to_uint8_array(env, (*addresses)[index]));
  return array;
}

Napi::Value to_links(Napi::Env env, const Links& links) {
  const Napi::Array array = Napi::Array::New(env, links.size());
  for (std::uint32_t index = 0; index < links.size(); ++index) {
    const Napi::HandleScope scope(env);
    Napi::Object value = Napi::Object::New(env);
    value.Set("link", Napi::String::New(env, links[index].link));
    value.Set("ipv4", to_uint8_array(env, links[index].ipv4));
    value.Set("ipv6", to_uint8_array(env, links[index].ipv6));
    array.Set(index, value);
  }
  return array;
}

Napi::Value to_change(Napi::Env env, const route::Change& change) {
  Napi::Object value = Napi::Object::New(env);
  value.Set("links", texts_value(env, {change.links.begin(), change.links.end()}));
  value.Set("missed", Napi::Boolean::New(env, change.missed));
  return value;
}

route::AddressOperation address_operation_argument(const Argument& at) {
  route::AddressOperation operation;
  operation.add = !at.member("type").either("add", "delete");
  operation.length = at.member("family").either("IPv4", "IPv6") ? 16 : 4;
  const Argument addresses = at.member("addresses");
  operation.addresses = addresses.bytes();
  if (operation.addresses.size() % operation.length != 0) {
    addresses.expect("whole addresses of " + std::to_string(operation.length) + " bytes");
  }
  return operation;
}

Napi::Value link_addresses(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const std::string name = link_argument(Argument(info[0], "name", misuse));
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<Addresses>::start(
      info, kLinkAddresses, route_sockets_of(info.Env()),
      [name](netlink::Socket& socket) { return route::link_addresses(socket, name); }, to_addresses);
}

Napi::Value all_addresses(const Napi::CallbackInfo& info) {
  return SimpleCall<Links>::start(info, kAllAddresses, route_sockets_of(info.Env()), route::all_addresses, to_links);
}

Napi::Value link_ensure_dummy(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const std::string name = link_argument(Argument(info[0], "name", misuse));
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<bool>::start(
      info, kEnsureDummy, route_sockets_of(info.Env()),
      [name](netlink::Socket& socket) { return route::ensure_dummy(socket, name); }, boolean_value);
}

Napi::Value link_delete(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const std::string name = link_argument(Argument(info[0], "name", misuse));
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<bool>::start(
      info, kLinkDelete, route_sockets_of(info.Env()),
      [name](netlink::Socket& socket) { return route::delete_link(socket, name); }, boolean_value);
}

Napi::Value address_apply(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const std::string link = link_argument(Argument(info[0], "link", misuse));
  std::vector<route::AddressOperation> operations;
  for (const Argument& each : Argument(info[1], "operations", misuse).items()) operations.push_back(address_operation_argument(each));
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<netlink::Applied>::start(
      info, kApplyAddresses, route_sockets_of(info.Env()),
      [link, operations = std::move(operations)](netlink::Socket& socket) { return route::apply_addresses(socket, link, operations); },
      to_applied_addresses);
}

Napi::Value route_watch(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Misuse misuse(env);
  if (!info[0].IsFunction()) Argument(info[0], "onChange", misuse).expect("a function");
  if (misuse.failed()) return misuse.raise();
  auto opened = route::Watch::open(route_sockets_of(env)->port_bits());
  if (!opened.ok()) return throw_netlink(env, opened.error(), kWatchRoutes);
  return RunningWatch<route::Watch, route::Change, to_change>::start(env, kWatchRoutes, std::move(opened.value()),
                                                                     info[0].As<Napi::Function>(), [] {});
}

}  // namespace

Napi::Object route_functions(Napi::Env env) {
  Functions functions(env);
  functions.add<link_addresses>("linkAddresses");
  functions.add<all_addresses>("allAddresses");
  functions.add<link_ensure_dummy>("linkEnsureDummy");
  functions.add<link_delete>("linkDelete");
  functions.add<address_apply>("addressApply");
  functions.add<route_watch>("routeWatch");
  return functions.object();
}

}  // namespace pointsman::addon
