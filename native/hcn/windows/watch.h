#pragma once

#include <functional>
#include <memory>

#include "hcn/windows/library.h"

namespace pointsman::hcn {

struct Change {
  /// A network came or went.
  bool networks = false;
  /// The service ended, and with it this watch.
  bool disconnected = false;

  bool any() const { return networks || disconnected; }
  void merge(const Change& other) {
    networks = networks || other.networks;
    disconnected = disconnected || other.disconnected;
  }
};

/// Calls back, on threads of Windows, with the events of HNS, until it is destroyed.
class Watch {
 public:
  using OnChange = std::function<void(const Change&)>;

  static Answer<std::shared_ptr<Watch>> open(Library& library, OnChange on_change);

  explicit Watch(OnChange on_change) : on_change_(std::move(on_change)) {}
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();

 private:
  static void CALLBACK notified(DWORD type, void* watch, HRESULT status, PCWSTR data);

  OnChange on_change_;
  Unregister unregister_ = nullptr;
  HCN_CALLBACK handle_ = nullptr;
};

}  // namespace pointsman::hcn
