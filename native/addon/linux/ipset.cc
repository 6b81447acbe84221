#include "addon/linux/subsystems.h"

#include <linux/netfilter/ipset/ip_set.h>

#include "addon/argument.h"
#include "addon/functions.h"
#include "addon/linux/simple_call.h"
#include "addon/values.h"
#include "ipset/sets.h"

namespace pointsman::addon {

namespace {

Napi::Value ipset_names(const Napi::CallbackInfo& info) {
  return SimpleCall<std::vector<std::string>>::start(info, "ipset list", ipset::set_names, texts_value);
}

Napi::Value ipset_destroy(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const std::string name = Argument(info[0], "name", misuse).text(1, IPSET_MAXNAMELEN - 1);
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<bool>::start(info, "ipset destroy", [name] { return ipset::destroy_set(name); }, boolean_value);
}

}  // namespace

Napi::Object ipset_functions(Napi::Env env) {
  Functions functions(env);
  functions.add<ipset_names>("ipsetNames");
  functions.add<ipset_destroy>("ipsetDestroy");
  return functions.object();
}

}  // namespace pointsman::addon
