#include "addon/linux/subsystems.h"

#include <linux/netfilter/nfnetlink_acct.h>

#include "accounting/objects.h"
#include "addon/argument.h"
#include "addon/functions.h"
#include "addon/linux/simple_call.h"
#include "addon/values.h"

namespace pointsman::addon {

namespace {

using Packets = std::optional<std::uint64_t>;

Napi::Value to_count(Napi::Env env, const Packets& packets) {
  return packets ? Napi::Number::New(env, static_cast<double>(*packets)) : env.Null();
}

Napi::Value account_create(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const std::string name = Argument(info[0], "name", misuse).text(1, NFACCT_NAME_MAX - 1);
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<bool>::start(info, "account create", [name] { return accounting::create_object(name); }, boolean_value);
}

Napi::Value account_packets(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const std::string name = Argument(info[0], "name", misuse).text(1, NFACCT_NAME_MAX - 1);
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<Packets>::start(info, "account packets", [name] { return accounting::packets_of(name); }, to_count);
}

}  // namespace

Napi::Object accounting_functions(Napi::Env env) {
  Functions functions(env);
  functions.add<account_create>("accountCreate");
  functions.add<account_packets>("accountPackets");
  return functions.object();
}

}  // namespace pointsman::addon
