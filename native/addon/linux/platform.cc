#include "addon/platform.h"

#include <cerrno>
#include <cstring>

#include "addon/linux/environment.h"
#include "addon/linux/subsystems.h"

namespace pointsman::addon {

void export_subsystems(Napi::Env env, Napi::Object exports) {
  attach_environment(env);
  exports.Set("nftables", nftables_functions(env));
  exports.Set("conntrack", conntrack_functions(env));
  exports.Set("iptables", iptables_functions(env));
  exports.Set("accounting", accounting_functions(env));
  exports.Set("timeouts", timeouts_functions(env));
  exports.Set("ipvs", ipvs_functions(env));
  exports.Set("ipset", ipset_functions(env));
  exports.Set("route", route_functions(env));
  exports.Set("memory", memory_functions(env));
  exports.Set("peer", peer_functions(env));
  exports.Set("relay", relay_functions(env));
  exports.Set("sysctl", sysctl_functions(env));
  exports.Set("probe", probe_functions(env));
}

std::string error_name(int number) {
  const char* name = strerrorname_np(number);
  return name == nullptr ? "errno " + std::to_string(number) : name;
}

std::string error_meaning(int number) {
  const char* meaning = strerrordesc_np(number);
  return meaning == nullptr ? "unknown" : meaning;
}

std::string error_advice(int number) {
  return number == EPERM ? "changes need CAP_NET_ADMIN in the network namespace" : "";
}

}  // namespace pointsman::addon
