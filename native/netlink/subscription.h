#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>

#include "netlink/socket.h"

namespace pointsman::netlink {

/// What is sent to groups of a subsystem from now on, in the network namespace of the calling thread.
class Subscription {
 public:
  /// `protocol`: NETLINK_*. `ignored_ports`: of one's own sockets, under SocketPool::kPortMask, where what was done on behalf of these is left out.
  /// `buffer`: bytes of room for what is not read yet, as the kernel counts it.
  static Result<Subscription> open(int protocol, std::initializer_list<int> groups, std::optional<std::uint32_t> ignored_ports,
                                   std::size_t buffer = kBuffer);

  Subscription(Subscription&& other) noexcept;
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;
  ~Subscription();

  /// Blocks until something was sent, or `wake` or `stop` called.
  void wait();
  /// Blocks for a while, or until `wake` or `stop` is called.
  void rest(std::chrono::milliseconds duration);
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

  /// Room for the notifications of a ruleset of some size between two looks.
  static constexpr std::size_t kBuffer = std::size_t{4} * 1024 * 1024;

  Socket socket_;
  int wake_;
  std::atomic<bool> stopped_ = false;
};

/// Calls `poll` until it has a change to report (`any`), waiting in between; nothing after `stop`.
template <typename Change, typename Poll>
std::optional<Change> wait_for_change(Subscription& subscription, Poll&& poll) {
  while (!subscription.stopped()) {
    if (Change change = poll(); change.any()) return change;
    subscription.wait();
  }
  return std::nullopt;
}

}  // namespace pointsman::netlink
