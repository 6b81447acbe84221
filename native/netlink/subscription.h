#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>

#include "netlink/socket.h"

namespace pointsman::netlink {

/// What is sent to groups of a subsystem from now on, but for what was done on behalf of one's own sockets, in the network namespace of the calling thread.
class Subscription {
 public:
  /// `protocol`: NETLINK_*. `ignored_ports`: of those sockets, under SocketPool::kPortMask.
  static Result<Subscription> open(int protocol, std::initializer_list<int> groups, std::uint32_t ignored_ports);

  Subscription(Subscription&& other) noexcept;
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;
  ~Subscription();

  /// Blocks until something was sent, or `wake` or `stop` called.
  void wait();
  bool stopped() const { return stopped_; }
  /// Hands over every datagram that is there. False: some may be lost.
  bool drain(const std::function<void(ByteView)>& on_datagram);

  // From any thread.

  void wake();
  void stop();
  void leave(int group) { static_cast<void>(socket_.leave(group)); }
  void join(int group) { static_cast<void>(socket_.join(group)); }

 private:
  Subscription(Socket socket, int wake) : socket_(std::move(socket)), wake_(wake) {}

  Socket socket_;
  int wake_;
  std::atomic<bool> stopped_ = false;
};

/// Calls `poll` until it has a change to tell (`any`), waiting in between; nothing after `stop`.
template <typename Change, typename Poll>
std::optional<Change> wait_for_change(Subscription& subscription, Poll&& poll) {
  while (!subscription.stopped()) {
    if (Change change = poll(); change.any()) return change;
    subscription.wait();
  }
  return std::nullopt;
}

}  // namespace pointsman::netlink
