#include "addon/linux/subsystems.h"

#include <net/if.h>

#include "addon/argument.h"
#include "addon/functions.h"
#include "addon/linux/simple_call.h"
#include "addon/values.h"
#include "route/link.h"

namespace pointsman::addon {

namespace {

using Addresses = std::optional<std::vector<netlink::Bytes>>;

Napi::Value to_addresses(Napi::Env env, const Addresses& addresses) {
  if (!addresses) return env.Null();
  const Napi::Array array = Napi::Array::New(env, addresses->size());
  for (std::uint32_t index = 0; index < addresses->size(); ++index) array.Set(index, to_uint8_array(env, (*addresses)[index]));
  return array;
}

Napi::Value link_addresses(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const std::string name = Argument(info[0], "name", misuse).text(1, IF_NAMESIZE - 1);
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<Addresses>::start(info, "link addresses", [name] { return route::link_addresses(name); }, to_addresses);
}

Napi::Value link_delete(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const std::string name = Argument(info[0], "name", misuse).text(1, IF_NAMESIZE - 1);
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<bool>::start(info, "link delete", [name] { return route::delete_link(name); }, boolean_value);
}

}  // namespace

Napi::Object route_functions(Napi::Env env) {
  Functions functions(env);
  functions.add<link_addresses>("linkAddresses");
  functions.add<link_delete>("linkDelete");
  return functions.object();
}

}  // namespace pointsman::addon
