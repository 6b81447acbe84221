#include "hcn/windows/library.h"

#include <objbase.h>

#include <utility>

namespace pointsman::hcn {

namespace {

using HnsCall = HRESULT(WINAPI*)(PCWSTR method, PCWSTR path, PCWSTR body, PWSTR* answer);

Refusal last_error(const char* call, std::string reason) {
  return {static_cast<std::uint32_t>(HRESULT_FROM_WIN32(GetLastError())), call, {}, std::move(reason)};
}

Answer<HMODULE> load(const wchar_t* name, const char* shown) {
  const HMODULE module = LoadLibraryExW(name, nullptr, LOAD_LIBRARY_SEARCH_SYSTEM32);
  if (module == nullptr) return last_error("LoadLibraryExW", shown);
  return module;
}

/// Looks functions up, and keeps the first that is not there.
class Lookup {
 public:
  explicit Lookup(HMODULE module) : module_(module) {}

  template <typename Function>
  Call<Function> find(const char* name) {
    const FARPROC found = GetProcAddress(module_, name);
    if (found == nullptr && !missing_) missing_ = last_error("GetProcAddress", name);
    // Goes through a pointer to data: compilers warn of casts between types of functions, and this one needs such
    // a cast.
    return {name, reinterpret_cast<Function>(reinterpret_cast<void*>(found))};
  }

  const std::optional<Refusal>& missing() const { return missing_; }

 private:
  HMODULE module_;
  std::optional<Refusal> missing_;
};

}  // namespace

TaskText::~TaskText() { CoTaskMemFree(text_); }

std::u16string TaskText::text() const {
  std::u16string copy;
  for (const wchar_t* unit = text_; unit != nullptr && *unit != L'\0'; ++unit) copy += static_cast<char16_t>(*unit);
  return copy;
}

std::optional<Refusal> refusal(const char* call, HRESULT result, const TaskText& record) {
  const std::u16string text = record.text();
  if (SUCCEEDED(result) && text.empty()) return {};
  Refusal refused{static_cast<std::uint32_t>(result), call, {}, {}};
  if (!text.empty()) {
    ErrorRecord read = read_error_record(text);
    refused.record = std::move(read.words);
    if (SUCCEEDED(result)) refused.hresult = read.code.value_or(0);
  }
  return refused;
}

Answer<Calls> Library::calls() {
  const std::lock_guard lock(mutex_);
  if (calls_) return *calls_;
  const auto module = load(L"computenetwork.dll", "computenetwork.dll");
  if (!module.ok()) return module.error();
  Lookup in(module.value());
  Calls calls;
  calls.networks = {in.find<Enumerate>("HcnEnumerateNetworks"), in.find<Open>("HcnOpenNetwork"),
                    in.find<Query>("HcnQueryNetworkProperties"), in.find<Close>("HcnCloseNetwork"), {}};
  calls.endpoints = {in.find<Enumerate>("HcnEnumerateEndpoints"), in.find<Open>("HcnOpenEndpoint"),
                     in.find<Query>("HcnQueryEndpointProperties"), in.find<Close>("HcnCloseEndpoint"),
                     in.find<Delete>("HcnDeleteEndpoint")};
  calls.load_balancers = {in.find<Enumerate>("HcnEnumerateLoadBalancers"), in.find<Open>("HcnOpenLoadBalancer"),
                          in.find<Query>("HcnQueryLoadBalancerProperties"), in.find<Close>("HcnCloseLoadBalancer"),
                          in.find<Delete>("HcnDeleteLoadBalancer")};
  calls.create_endpoint = in.find<CreateEndpoint>("HcnCreateEndpoint");
  calls.create_load_balancer = in.find<CreateLoadBalancer>("HcnCreateLoadBalancer");
  calls.modify_load_balancer = in.find<Modify>("HcnModifyLoadBalancer");
  calls.watch_service = in.find<Register>("HcnRegisterServiceCallback");
  calls.unwatch_service = in.find<Unregister>("HcnUnregisterServiceCallback");
  if (in.missing()) return *in.missing();
  calls_ = calls;
  return calls;
}

Answer<Version> Library::version() {
  const auto module = load(L"vmcompute.dll", "vmcompute.dll");
  if (!module.ok()) return module.error();
  Lookup in(module.value());
  const auto call = in.find<HnsCall>("HNSCall");
  if (in.missing()) return *in.missing();
  TaskText answer;
  const HRESULT result = call.function(L"GET", L"/globals/version", L"", answer.place());
  if (FAILED(result)) return Refusal{static_cast<std::uint32_t>(result), call.name, {}, {}};
  const std::u16string text = answer.text();
  if (const auto version = read_version(text)) return *version;
  return Refusal{0, call.name, read_error_record(text).words, "no version"};
}

}  // namespace pointsman::hcn
