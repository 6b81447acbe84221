#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace pointsman::polling {

/// Something of the kernel's whose changes it does not report, as it was seen.
class Subject {
 public:
  virtual ~Subject() = default;
  /// Whether it is not as it was seen, or cannot be looked at.
  virtual bool is_changed() = 0;
};

/// Looks at subjects again and again, from a thread of its own: one that only does this costs a tenth of what it costs to wake JavaScript. Subjects of one
/// period are looked at together, as a thread's wakeup costs more than a look. Its functions may be called from any thread.
class Poller {
 public:
  using Clock = std::chrono::steady_clock;

  Poller() = default;
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;
  ~Poller();

  /// Looks once in each period of this length, and forgets the subject when it is changed. Then `on_change` is called from the poller's thread; it must not
  /// call the poller. What it returns is for `remove`.
  std::uint64_t add(std::unique_ptr<Subject> subject, std::chrono::milliseconds period, std::function<void()> on_change);
  /// `on_change` is not called afterwards. Waits for a look that is under way.
  void remove(std::uint64_t id);

 private:
  struct Entry {
    std::unique_ptr<Subject> subject;
    std::chrono::milliseconds period;
    Clock::time_point due;
    std::function<void()> on_change;
  };

  void run();
  void look(Clock::time_point now);

  std::mutex mutex_;
  std::condition_variable woken_;
  std::map<std::uint64_t, Entry> entries_;
  std::uint64_t last_id_ = 0;
  bool stopped_ = false;
  /// Runs from the first subject on.
  std::thread thread_;
};

}  // namespace pointsman::polling
