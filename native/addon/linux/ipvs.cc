#include "addon/linux/subsystems.h"

#include <sys/socket.h>

#include "addon/argument.h"
#include "addon/functions.h"
#include "addon/linux/simple_call.h"
#include "addon/values.h"
#include "ipvs/services.h"

namespace pointsman::addon {

namespace {

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

Napi::Value ipvs_list(const Napi::CallbackInfo& info) {
  return SimpleCall<std::vector<ipvs::ListedService>>::start(info, "ipvs list", ipvs::list_services, to_services);
}

Napi::Value ipvs_delete(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const ipvs::Service service = service_argument(Argument(info[0], "service", misuse));
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<bool>::start(info, "ipvs delete", [service] { return ipvs::delete_service(service); }, boolean_value);
}

}  // namespace

Napi::Object ipvs_functions(Napi::Env env) {
  Functions functions(env);
  functions.add<ipvs_list>("ipvsList");
  functions.add<ipvs_delete>("ipvsDelete");
  return functions.object();
}

}  // namespace pointsman::addon
