#include "conntrack/flow_counter.h"

#include <linux/netfilter/nfnetlink.h>

#include <chrono>
#include <string_view>
#include <utility>

namespace pointsman::conntrack {

namespace {

using netlink::ByteView;
using netlink::Message;
using netlink::Result;
using netlink::Socket;
using netlink::Status;

/// A wakeup for each flow would cost more than reading it.
constexpr std::chrono::milliseconds kGather{50};

/// What came on top of `before`. Counters may have been reset, by another program that lists and clears.
Carried since(const Carried& before, const Carried& now) {
  if (now.packets < before.packets || now.bytes < before.bytes) return now;
  return {now.packets - before.packets, now.bytes - before.bytes};
}

void add_carried(Carried& to, const Carried& more) {
  to.packets += more.packets;
  to.bytes += more.bytes;
}

}  // namespace

void Sum::add(const Sum& other) {
  flows += other.flows;
  add_carried(request, other.request);
  add_carried(reply, other.reply);
}

std::size_t FlowLedger::WayHash::operator()(const FlowWay& way) const {
  return std::hash<std::string_view>{}(std::string_view(reinterpret_cast<const char*>(way.data()), way.size()));
}

void FlowLedger::begin_listing() {
  ++listing_;
  listing_now_ = true;
}

void FlowLedger::seen(const TranslatedFlow& flow) {
  if (listing_now_ && ended_.contains(flow.identity)) return;
  const auto [at, fresh] = living_.try_emplace(flow.identity);
  Counted& counted = at->second;
  if (based_) count(flow.way, {fresh ? 1U : 0U, since(counted.request, flow.request), since(counted.reply, flow.reply)});
  counted = {flow.request, flow.reply, listing_};
}

void FlowLedger::end_listing(bool complete) {
  listing_now_ = false;
  ended_.clear();
  if (!complete) return;
  based_ = true;
  // A flow that moves while it is listed may be missing from one.
  std::erase_if(living_, [this](const auto& each) { return each.second.listing + 1 < listing_; });
}

void FlowLedger::ended(const TranslatedFlow& flow) {
  if (listing_now_) ended_.insert(flow.identity);
  const auto known = living_.find(flow.identity);
  const Counted before = known == living_.end() ? Counted{} : known->second;
  count(flow.way, {known == living_.end() ? 1U : 0U, since(before.request, flow.request), since(before.reply, flow.reply)});
  if (known != living_.end()) living_.erase(known);
}

void FlowLedger::count(const FlowWay& way, const Sum& sum) {
  if (sum.flows == 0 && sum.request.packets == 0 && sum.reply.packets == 0) return;
  const auto known = sums_.find(way);
  if (known != sums_.end()) known->second.add(sum);
  else if (sums_.size() < most_) sums_.emplace(way, sum);
  else left_out_.add(sum);
}

FlowSums FlowLedger::take() {
  FlowSums sums;
  sums.rows.reserve(sums_.size());
  for (const auto& [way, sum] : std::exchange(sums_, {})) sums.rows.push_back({way, sum});
  sums.left_out = std::exchange(left_out_, {});
  sums.overruns = std::exchange(overruns_, 0U);
  sums.living = living_.size();
  return sums;
}

Result<std::shared_ptr<FlowCounter>> FlowCounter::open(std::size_t most, std::size_t buffer) {
  // Also of flows that end on behalf of this process, which removes stale ones.
  auto ends = netlink::Subscription::open(NETLINK_NETFILTER, {NFNLGRP_CONNTRACK_DESTROY}, std::nullopt, buffer);
  if (!ends.ok()) return ends.error();
  return std::make_shared<FlowCounter>(Key{}, std::move(ends.value()), most);
}

void FlowCounter::run() {
  while (!ends_.stopped()) {
    ends_.wait();
    if (!ends_.stopped()) ends_.rest(kGather);
    const std::lock_guard lock(mutex_);
    read_ends();
  }
}

void FlowCounter::read_ends() {
  const bool complete = ends_.drain([this](ByteView datagram) {
    netlink::MessageReader reader(datagram);
    while (const auto message = reader.next()) {
      if (!is_end(*message)) continue;
      const auto flow = decode_translated(*message);
      if (!flow.ok()) ledger_.overrun();
      else if (flow.value()) ledger_.ended(*flow.value());
    }
  });
  if (!complete) ledger_.overrun();
}

Result<FlowSums> FlowCounter::take(Socket& socket) {
  const std::lock_guard turn(turn_);
  const auto locked = [this](auto&& work) {
    const std::lock_guard lock(mutex_);
    return work();
  };
  locked([this] { ledger_.begin_listing(); });
  std::uint32_t sequence = 0;
  Status listed = netlink::Done{};
  // A flow that is seen twice is counted once.
  for (int attempt = 0; attempt <= Socket::kMaxRestarts; ++attempt) {
    listed = socket.dump(encode_list_all(++sequence), [&](const Message& message) -> Status {
      auto flow = decode_translated(message);
      if (!flow.ok()) return flow.error();
      if (flow.value()) locked([&] { ledger_.seen(*flow.value()); });
      return netlink::Done{};
    });
    if (listed.ok() || listed.error().code != EINTR) break;
  }
  const bool interrupted = !listed.ok() && listed.error().code == EINTR;
  return locked([&]() -> Result<FlowSums> {
    read_ends();
    ledger_.end_listing(listed.ok() || interrupted);
    if (!listed.ok() && !interrupted) return listed.error();
    return ledger_.take();
  });
}

}  // namespace pointsman::conntrack
