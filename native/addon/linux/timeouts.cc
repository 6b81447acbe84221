#include "addon/linux/subsystems.h"

#include <linux/netfilter/nfnetlink_cttimeout.h>

#include <vector>

#include "addon/argument.h"
#include "addon/functions.h"
#include "addon/linux/simple_call.h"
#include "addon/values.h"
#include "conntrack/timeout_policy.h"

namespace pointsman::addon {

namespace {

using conntrack::TimeoutPolicy;
using Policies = std::vector<TimeoutPolicy>;

constexpr std::uint32_t kMostSeconds = 0xffffffff;

std::string policy_name(const Argument& at) { return at.text(1, CTNL_TIMEOUT_NAME_MAX - 1); }

TimeoutPolicy policy_argument(const Argument& at) {
  TimeoutPolicy policy;
  policy.name = policy_name(at.member("name"));
  policy.family = at.member("family").either("IPv4", "IPv6") ? conntrack::Family::kIPv6 : conntrack::Family::kIPv4;
  policy.protocol = static_cast<std::uint8_t>(at.member("protocol").integer(0, 255));
  const Argument seconds = at.member("seconds");
  for (const Argument& each : seconds.items()) policy.seconds.push_back(each.integer(0, kMostSeconds));
  if (policy.seconds.size() > conntrack::kMostPolicyStates) seconds.expect("at most 11 states");
  return policy;
}

Napi::Value to_policies(Napi::Env env, const Policies& policies) {
  const Napi::Array array = Napi::Array::New(env, policies.size());
  for (std::uint32_t index = 0; index < policies.size(); ++index) {
    const TimeoutPolicy& policy = policies[index];
    Napi::Object value = Napi::Object::New(env);
    value.Set("name", policy.name);
    value.Set("family", policy.family == conntrack::Family::kIPv4 ? "IPv4" : "IPv6");
    value.Set("protocol", Napi::Number::New(env, policy.protocol));
    const Napi::Array seconds = Napi::Array::New(env, policy.seconds.size());
    for (std::uint32_t state = 0; state < policy.seconds.size(); ++state) seconds.Set(state, Napi::Number::New(env, policy.seconds[state]));
    value.Set("seconds", seconds);
    array.Set(index, value);
  }
  return array;
}

Napi::Value undefined_value(Napi::Env env, const bool&) { return env.Undefined(); }

Napi::Value timeout_list(const Napi::CallbackInfo& info) {
  return SimpleCall<Policies>::start(info, "timeout list", conntrack::list_policies, to_policies);
}

Napi::Value timeout_set(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  TimeoutPolicy policy = policy_argument(Argument(info[0], "policy", misuse));
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<bool>::start(
      info, "timeout set", [policy = std::move(policy)] { return conntrack::set_policy(policy); }, undefined_value);
}

Napi::Value timeout_delete(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const std::string name = policy_name(Argument(info[0], "name", misuse));
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<bool>::start(info, "timeout delete", [name] { return conntrack::delete_policy(name); }, boolean_value);
}

}  // namespace

Napi::Object timeouts_functions(Napi::Env env) {
  Functions functions(env);
  functions.add<timeout_list>("timeoutList");
  functions.add<timeout_set>("timeoutSet");
  functions.add<timeout_delete>("timeoutDelete");
  return functions.object();
}

}  // namespace pointsman::addon
