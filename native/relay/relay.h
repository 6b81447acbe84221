#pragma once

#include <pthread.h>

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"

namespace pointsman::relay {

/// The end of a pair.
struct End {
  std::uint64_t id = 0;
  /// The errno for which it could not be carried; 0: a peer or `end` ended it.
  int lack = 0;
};

using Sockets = std::array<Descriptor, 2>;

/// Carries the bytes of pairs of TCP sockets from one to the other, both ways, by splice(2) from a thread of its own, which runs from the first pair until a
/// while after the last. The end of what one peer sends is passed on after everything before it; after an error both sockets are reset. Its functions are for
/// one thread, and do not wait for pairs.
class Relay {
 public:
  /// `on_end` is called from the relay's thread, once for each pair that ends before the relay does.
  explicit Relay(std::function<void(const End&)> on_end) : on_end_(std::move(on_end)) {}
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  /// Resets all pairs, and waits for the thread: `on_end` is not called afterwards.
  ~Relay();

  /// Answers the pair's id, or an errno. The relay gets descriptors of its own for the two sockets, and makes them non-blocking; those it is given may be
  /// closed, which sends nothing.
  Result<std::uint64_t, int> add(int one, int other);
  /// Resets a pair, unless it has ended.
  void end(std::uint64_t id);

 private:
  struct Added {
    std::uint64_t id = 0;
    Sockets sockets;
  };
  /// What the thread is to do.
  struct Orders {
    std::vector<Added> added;
    std::vector<std::uint64_t> ended;
    bool stop = false;
  };
  class Loop;

  /// Starts the thread; answers an errno.
  int start();
  void join();
  void wake() const;
  void run();
  /// On the thread. False: it ends.
  bool obey(Loop& loop);

  const std::function<void(const End&)> on_end_;
  std::uint64_t last_id_ = 0;
  std::optional<pthread_t> thread_;
  /// For a thread that starts.
  Descriptor epoll_;

  std::mutex mutex_;
  Orders orders_;
  /// Open as long as the thread takes orders.
  Descriptor wake_;
};

}  // namespace pointsman::relay
