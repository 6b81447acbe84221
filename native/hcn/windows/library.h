#pragma once

#include <windows.h>
// After windows.h, which it needs.
#include <computenetwork.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "hcn/text.h"

namespace pointsman::hcn {

/// Why a call of HNS, or what leads to one, failed.
struct Refusal {
  /// 0 where there is none: HNS answered what it should not.
  std::uint32_t hresult = 0;
  /// The function of Windows.
  const char* call = "";
  /// In HNS's words.
  std::optional<std::string> record;
  /// In ours; may be empty.
  std::string reason;
};

template <typename T>
using Answer = Result<T, Refusal>;

/// A text that a DLL allocated and the caller frees.
class TaskText {
 public:
  TaskText() = default;
  TaskText(const TaskText&) = delete;
  TaskText& operator=(const TaskText&) = delete;
  ~TaskText();

  /// Where the DLL puts it; to be asked for once.
  PWSTR* place() { return &text_; }
  std::u16string text() const;

 private:
  PWSTR text_ = nullptr;
};

/// The failure of a call; none where it succeeded, for which HNS's error record must be empty as well.
std::optional<Refusal> refusal(const char* call, HRESULT result, const TaskText& record);

using Enumerate = HRESULT(WINAPI*)(PCWSTR query, PWSTR* ids, PWSTR* record);
using Open = HRESULT(WINAPI*)(REFGUID id, void** object, PWSTR* record);
using Query = HRESULT(WINAPI*)(void* object, PCWSTR query, PWSTR* properties, PWSTR* record);
using Close = HRESULT(WINAPI*)(void* object);
using Delete = HRESULT(WINAPI*)(REFGUID id, PWSTR* record);
using Modify = HRESULT(WINAPI*)(void* object, PCWSTR settings, PWSTR* record);
using CreateEndpoint = HRESULT(WINAPI*)(void* network, REFGUID id, PCWSTR settings, void** endpoint, PWSTR* record);
using CreateLoadBalancer = HRESULT(WINAPI*)(REFGUID id, PCWSTR settings, void** balancer, PWSTR* record);
using Register = HRESULT(WINAPI*)(HCN_NOTIFICATION_CALLBACK callback, void* context, HCN_CALLBACK* handle);
using Unregister = HRESULT(WINAPI*)(HCN_CALLBACK handle);

/// A function and its name, for errors.
template <typename Function>
struct Call {
  const char* name = "";
  Function function = nullptr;
};

/// What every kind of objects has.
struct KindCalls {
  Call<Enumerate> enumerate;
  Call<Open> open;
  Call<Query> query;
  Call<Close> close;
  /// Networks are not ours to delete.
  Call<Delete> erase;
};

struct Calls {
  KindCalls networks;
  KindCalls endpoints;
  KindCalls load_balancers;
  Call<CreateEndpoint> create_endpoint;
  Call<CreateLoadBalancer> create_load_balancer;
  Call<Modify> modify_load_balancer;
  Call<Register> watch_service;
  Call<Unregister> unwatch_service;
};

/// computenetwork.dll and vmcompute.dll, loaded when they are first needed and from Windows' own folder only. They stay loaded: threads of theirs may
/// outlast their caller. What is known of HNS is kept with them, so that it is not asked for the same again and again.
class Library {
 public:
  Answer<Calls> calls();
  Answer<Version> version();

  /// Whether HNS takes the ids that objects are created with, as far as was seen: until then each object is asked for its own.
  std::atomic<bool> takes_ids = false;

 private:
  std::mutex mutex_;
  std::optional<Calls> calls_;
};

}  // namespace pointsman::hcn
