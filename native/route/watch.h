#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "netlink/subscription.h"

namespace pointsman::route {

/// What happened to links and their addresses.
struct Change {
  /// Names of links that changed, or of which an address came or went.
  std::set<std::string> links;
  /// Something may have happened unseen.
  bool missed = false;

  bool any() const { return missed || !links.empty(); }
  void merge(const Change& later);
};

/// Adds the content of one datagram of notifications. `name_of` answers the name of a link by its index, empty when it is gone: that is reported
/// separately.
void read_change(netlink::ByteView datagram, const std::function<std::string(std::uint32_t)>& name_of, Change& change);

/// A subscription to changes of links and addresses by anyone but the owner of the ports that `ignored_ports` and SocketPool::kPortMask describe, in the
/// network namespace of the calling thread. For IPv6 addresses the kernel does not report who changed them.
class Watch {
  struct Key {};

 public:
  static netlink::Result<std::unique_ptr<Watch>> open(std::uint32_t ignored_ports);
  Watch(Key, netlink::Subscription subscription) : subscription_(std::move(subscription)) {}

  /// Blocks until something happens; nothing after `stop`.
  std::optional<Change> wait();
  /// What has been notified by now, without waiting.
  Change poll();
  /// From any thread: `wait` answers nothing from now on.
  void stop() { subscription_.stop(); }

 private:
  netlink::Subscription subscription_;
};

}  // namespace pointsman::route
