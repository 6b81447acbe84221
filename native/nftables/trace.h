#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "netlink/answer.h"
#include "netlink/byte_order.h"
#include "netlink/socket.h"
#include "netlink/subscription.h"
#include "nftables/expression.h"
#include "nftables/transaction.h"

namespace pointsman::nftables {

/// What the kernel reports of a packet that it traces: a rule that applied to it, or the end of a base chain.
struct TraceEvent {
  /// The same for a packet on its way through the hooks, as far as the kernel reports it.
  std::uint32_t id = 0;
  Family family = Family::kIp;
  std::string table;
  std::string chain;
  /// NFT_TRACETYPE_*
  std::uint32_t type = 0;
  std::optional<std::uint64_t> handle;
  std::optional<Verdict> verdict;
  /// Interfaces by number; the kernel reports them, and the headers, once for each base chain that the packet enters.
  std::optional<std::uint32_t> input;
  std::optional<std::uint32_t> output;
  Bytes network;
  Bytes transport;
};

/// Events that JavaScript has not received yet.
struct TraceEvents {
  std::vector<TraceEvent> events;
  /// More was reported than could be received or kept.
  bool missed = false;

  bool any() const { return missed || !events.empty(); }
  void merge(const TraceEvents& later);

  static constexpr std::size_t kMost = 20'000;
};

/// Reads one datagram of reports; what is malformed counts as missed.
void read_trace(ByteView datagram, TraceEvents& to);

/// A table that lives as long as this does, and what the kernel reports of packets that its rules have traced. The kernel removes the table with the
/// socket that made it (NFT_TABLE_F_OWNER, Linux 5.12), so it goes with the process, however that ends.
class Trace {
  struct Key {};

 public:
  /// `transaction` makes the table, whose flags show that it has an owner.
  static netlink::Result<std::unique_ptr<Trace>, Failure> open(const Transaction& transaction);
  Trace(Key, netlink::Socket owner, netlink::Subscription subscription);

  /// Blocks until something is reported; nothing after `stop`.
  std::optional<TraceEvents> wait();
  /// From any thread.
  void stop() { subscription_.stop(); }

 private:
  TraceEvents poll();

  netlink::Socket owner_;
  netlink::Subscription subscription_;
};

}  // namespace pointsman::nftables
