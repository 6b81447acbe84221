#include "addon/platform.h"

#include "addon/windows/environment.h"
#include "addon/windows/subsystems.h"
#include "hcn/text.h"

namespace pointsman::addon {

void export_subsystems(Napi::Env env, Napi::Object exports) {
  attach_environment(env);
  exports.Set("hcn", hcn_functions(env));
  exports.Set("service", service_functions(env));
}

// Errors of this platform are HRESULTs.

std::string error_name(int number) { return hcn::hresult_name(static_cast<std::uint32_t>(number)); }

std::string error_meaning(int number) {
  const std::string_view meaning = hcn::hresult_meaning(static_cast<std::uint32_t>(number));
  return meaning.empty() ? "unknown" : std::string(meaning);
}

std::string error_advice(int number) {
  return error_name(number) == "E_ACCESSDENIED" ? "the process needs the rights of an administrator" : "";
}

}  // namespace pointsman::addon
