#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "conntrack/flow.h"
#include "netlink/subscription.h"

namespace pointsman::conntrack {

/// Flows and what they carried.
struct Sum {
  std::uint64_t flows = 0;
  Carried request;
  Carried reply;

  void add(const Sum& other);
};

/// What was counted between two takes.
struct FlowSums {
  struct Row {
    FlowWay way;
    Sum sum;
  };
  std::vector<Row> rows;
  /// The sum of the ways beyond the most that are counted separately.
  Sum left_out;
  /// How often the kernel reported more than could be kept: ends of flows were missed.
  std::uint32_t overruns = 0;
  /// Translated flows that were seen alive.
  std::size_t living = 0;
};

/// Adds up flows by way: each once when it is first seen, and what it has carried since it was last seen. It receives what the kernel reports, and asks
/// for nothing. Listings show each flow and a notification reports its end, in any order.
class FlowLedger {
 public:
  /// `most`: how many ways are counted separately between two takes.
  explicit FlowLedger(std::size_t most) : most_(most) {}

  /// A listing begins. What is in the first was there before the count began: it is not new, and neither is what it has carried.
  void begin_listing();
  void seen(const TranslatedFlow& flow);
  /// Whether all of it was seen: then flows that were in neither of the last two are forgotten, whose end was missed.
  void end_listing(bool complete);
  void ended(const TranslatedFlow& flow);
  void overrun() { ++overruns_; }

  FlowSums take();

 private:
  /// What has been counted of a flow that lives.
  struct Counted {
    Carried request;
    Carried reply;
    std::uint32_t listing = 0;
  };
  struct WayHash {
    std::size_t operator()(const FlowWay& way) const;
  };

  void count(const FlowWay& way, const Sum& sum);

  std::size_t most_;
  std::unordered_map<std::uint64_t, Counted> living_;
  /// Flows that ended while a listing runs, which may still show them.
  std::unordered_set<std::uint64_t> ended_;
  std::unordered_map<FlowWay, Sum, WayHash> sums_;
  Sum left_out_;
  std::uint32_t overruns_ = 0;
  std::uint32_t listing_ = 0;
  bool listing_now_ = false;
  bool based_ = false;
};

/// Counts translated flows in the network namespace of the thread that opens it.
class FlowCounter {
  struct Key {};

 public:
  /// `buffer`: bytes of room for ends that are not read yet, as the kernel counts them.
  static netlink::Result<std::shared_ptr<FlowCounter>> open(std::size_t most, std::size_t buffer);
  FlowCounter(Key, netlink::Subscription ends, std::size_t most) : ends_(std::move(ends)), ledger_(most) {}

  /// Reads which flows end, until `stop`; on a thread of its own.
  void run();
  /// From any thread.
  void stop() { ends_.stop(); }
  /// Lists the flows that live, and answers what was counted since the last call. One call at a time gets its turn.
  netlink::Result<FlowSums> take(netlink::Socket& socket);

 private:
  /// With `mutex_` held.
  void read_ends();

  netlink::Subscription ends_;
  /// Held for a whole take.
  std::mutex turn_;
  std::mutex mutex_;
  FlowLedger ledger_;
};

}  // namespace pointsman::conntrack
