#pragma once

#include <mutex>
#include <utility>

namespace pointsman::addon {

/// What other threads saw and JavaScript has not received yet. `Change`: `merge` and `any`.
template <typename Change>
class Inbox {
 public:
  /// Whether JavaScript has to be called: it is not when a call is on its way already.
  bool put(const Change& change) {
    const std::lock_guard lock(mutex_);
    const bool first = !change_.any();
    change_.merge(change);
    return first;
  }

  Change take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(change_, {});
  }

 private:
  std::mutex mutex_;
  Change change_;
};

}  // namespace pointsman::addon
