#include "addon/ipvs.h"

#include <linux/netfilter/ipset/ip_set.h>
#include <net/if.h>
#include <sys/socket.h>

#include "addon/argument.h"
#include "addon/simple_call.h"
#include "ipset/sets.h"
#include "ipvs/services.h"
#include "route/link.h"

namespace pointsman::addon {

namespace {

Napi::Value to_boolean(Napi::Env env, const bool& value) { return Napi::Boolean::New(env, value); }

Napi::Value to_services(Napi::Env env, const std::vector<ipvs::ListedService>& services) {
  const Napi::Array array = Napi::Array::New(env, services.size());
  for (std::uint32_t index = 0; index < services.size(); ++index) {
    const auto& [service, connections] = services[index];
    const Napi::HandleScope scope(env);
    Napi::Object value = Napi::Object::New(env);
    value.Set("protocol", Napi::Number::New(env, service.protocol));
    value.Set("family", Napi::String::New(env, service.family == AF_INET ? "IPv4" : "IPv6"));
    value.Set("address", service.address.empty() ? env.Null() : to_uint8_array(env, service.address));
    value.Set("port", Napi::Number::New(env, service.port));
    value.Set("mark", Napi::Number::New(env, service.mark));
    value.Set("connections", Napi::Number::New(env, static_cast<double>(connections)));
    array.Set(index, value);
  }
  return array;
}

Napi::Value to_texts(Napi::Env env, const std::vector<std::string>& texts) {
  const Napi::Array array = Napi::Array::New(env, texts.size());
  for (std::uint32_t index = 0; index < texts.size(); ++index) array.Set(index, Napi::String::New(env, texts[index]));
  return array;
}

using Addresses = std::optional<std::vector<netlink::Bytes>>;

Napi::Value to_addresses(Napi::Env env, const Addresses& addresses) {
  if (!addresses) return env.Null();
  const Napi::Array array = Napi::Array::New(env, addresses->size());
  for (std::uint32_t index = 0; index < addresses->size(); ++index) array.Set(index, to_uint8_array(env, (*addresses)[index]));
  return array;
}

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

}  // namespace

Napi::Value ipvs_list(const Napi::CallbackInfo& info) {
  return SimpleCall<std::vector<ipvs::ListedService>>::start(info, "ipvs list", ipvs::list_services, to_services);
}

Napi::Value ipvs_delete(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const ipvs::Service service = service_argument(Argument(info[0], "service", misuse));
  if (misuse.failed()) return raise(info, misuse);
  return SimpleCall<bool>::start(info, "ipvs delete", [service] { return ipvs::delete_service(service); }, to_boolean);
}

Napi::Value ipset_names(const Napi::CallbackInfo& info) {
  return SimpleCall<std::vector<std::string>>::start(info, "ipset list", ipset::set_names, to_texts);
}

Napi::Value ipset_destroy(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const std::string name = Argument(info[0], "name", misuse).text(1, IPSET_MAXNAMELEN - 1);
  if (misuse.failed()) return raise(info, misuse);
  return SimpleCall<bool>::start(info, "ipset destroy", [name] { return ipset::destroy_set(name); }, to_boolean);
}

Napi::Value link_addresses(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const std::string name = Argument(info[0], "name", misuse).text(1, IF_NAMESIZE - 1);
  if (misuse.failed()) return raise(info, misuse);
  return SimpleCall<Addresses>::start(info, "link addresses", [name] { return route::link_addresses(name); }, to_addresses);
}

Napi::Value link_delete(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const std::string name = Argument(info[0], "name", misuse).text(1, IF_NAMESIZE - 1);
  if (misuse.failed()) return raise(info, misuse);
  return SimpleCall<bool>::start(info, "link delete", [name] { return route::delete_link(name); }, to_boolean);
}

}  // namespace pointsman::addon
