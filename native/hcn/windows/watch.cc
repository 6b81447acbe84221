#include "hcn/windows/watch.h"

#include <utility>

namespace pointsman::hcn {

Answer<std::shared_ptr<Watch>> Watch::open(Library& library, OnChange on_change) {
  const auto calls = library.calls();
  if (!calls.ok()) return calls.error();
  auto watch = std::make_shared<Watch>(std::move(on_change));
  const auto& [name, watch_service] = calls.value().watch_service;
  HCN_CALLBACK handle = nullptr;
  const HRESULT result = watch_service(notified, watch.get(), &handle);
  if (FAILED(result)) return Refusal{static_cast<std::uint32_t>(result), name, {}, {}};
  watch->handle_ = handle;
  watch->unregister_ = calls.value().unwatch_service.function;
  return watch;
}

Watch::~Watch() {
  if (handle_ != nullptr) unregister_(handle_);
}

void CALLBACK Watch::notified(DWORD type, void* watch, HRESULT, PCWSTR) {
  Change change;
  change.networks = type == HcnNotificationNetworkCreate || type == HcnNotificationNetworkDelete;
  change.disconnected = type == HcnNotificationServiceDisconnect;
  if (change.any()) static_cast<const Watch*>(watch)->on_change_(change);
}

}  // namespace pointsman::hcn
