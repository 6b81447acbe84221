#include "addon/accounting.h"

#include <linux/netfilter/nfnetlink_acct.h>

#include "accounting/objects.h"
#include "addon/argument.h"
#include "addon/simple_call.h"

namespace pointsman::addon {

namespace {

using Packets = std::optional<std::uint64_t>;

Napi::Value to_boolean(Napi::Env env, const bool& value) { return Napi::Boolean::New(env, value); }

Napi::Value to_count(Napi::Env env, const Packets& packets) {
  return packets ? Napi::Number::New(env, static_cast<double>(*packets)) : env.Null();
}

}  // namespace

Napi::Value account_create(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const std::string name = Argument(info[0], "name", misuse).text(1, NFACCT_NAME_MAX - 1);
  if (misuse.failed()) return raise(info, misuse);
  return SimpleCall<bool>::start(info, "account create", [name] { return accounting::create_object(name); }, to_boolean);
}

Napi::Value account_packets(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const std::string name = Argument(info[0], "name", misuse).text(1, NFACCT_NAME_MAX - 1);
  if (misuse.failed()) return raise(info, misuse);
  return SimpleCall<Packets>::start(info, "account packets", [name] { return accounting::packets_of(name); }, to_count);
}

}  // namespace pointsman::addon
