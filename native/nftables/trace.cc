#include "nftables/trace.h"

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include <utility>

#include "netlink/attribute_reader.h"
#include "netlink/batch.h"

namespace pointsman::nftables {

namespace {

Bytes copied(ByteView bytes) { return Bytes(bytes.begin(), bytes.end()); }

/// Nothing for tables of other families, such as bridge.
std::optional<Family> known_family(std::optional<std::uint8_t> number) {
  for (const Family family : {Family::kInet, Family::kIp, Family::kIp6}) {
    if (number == static_cast<std::uint8_t>(family)) return family;
  }
  return std::nullopt;
}

TraceEvent read_event(const netlink::Message& message, Family family) {
  TraceEvent event;
  event.family = family;
  netlink::AttributeReader reader(message.attributes());
  while (const auto attribute = reader.next()) {
    switch (attribute->type) {
      case NFTA_TRACE_TABLE: event.table = attribute->string(); break;
      case NFTA_TRACE_CHAIN: event.chain = attribute->string(); break;
      case NFTA_TRACE_RULE_HANDLE: event.handle = attribute->be64(); break;
      case NFTA_TRACE_TYPE: event.type = attribute->be32().value_or(0); break;
      case NFTA_TRACE_VERDICT: event.verdict = read_verdict(attribute->payload); break;
      case NFTA_TRACE_POLICY: event.verdict = Verdict{static_cast<std::int32_t>(attribute->be32().value_or(0)), ""}; break;
      case NFTA_TRACE_ID: event.id = attribute->be32().value_or(0); break;
      case NFTA_TRACE_IIF: event.input = attribute->be32(); break;
      case NFTA_TRACE_OIF: event.output = attribute->be32(); break;
      case NFTA_TRACE_NETWORK_HEADER: event.network = copied(attribute->payload); break;
      case NFTA_TRACE_TRANSPORT_HEADER: event.transport = copied(attribute->payload); break;
      default: break;
    }
  }
  return event;
}

Failure refused(netlink::Error error) {
  Failure failure;
  failure.cause = std::move(error);
  return failure;
}

}  // namespace

void TraceEvents::merge(const TraceEvents& later) {
  missed = missed || later.missed;
  for (const TraceEvent& event : later.events) {
    if (events.size() < kMost) {
      events.push_back(event);
    } else {
      missed = true;
    }
  }
}

void read_trace(ByteView datagram, TraceEvents& to) {
  netlink::MessageReader reader(datagram);
  while (const auto message = reader.next()) {
    const auto family = known_family(message->family());
    if (message->type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_TRACE) || !family) continue;
    to.merge(TraceEvents{{read_event(*message, *family)}, false});
  }
  if (reader.malformed()) to.missed = true;
}

netlink::Result<std::unique_ptr<Trace>, Failure> Trace::open(const Transaction& transaction) {
  auto encoded = EncodedTransaction::encode(transaction);
  if (!encoded.ok()) return std::move(encoded.error());
  auto owner = netlink::Socket::open();
  if (!owner.ok()) return refused(std::move(owner.error()));
  // Before the table, so that nothing is missed.
  auto subscription = netlink::Subscription::open(NETLINK_NETFILTER, {NFNLGRP_NFTRACE}, std::nullopt);
  if (!subscription.ok()) return refused(std::move(subscription.error()));
  auto sent = netlink::send_batch(owner.value(), encoded.value().bytes(), encoded.value().messages());
  if (!sent.ok()) return encoded.value().explain(std::move(sent.error()), nullptr);
  return std::unique_ptr<Trace>(
      std::make_unique<Trace>(Key{}, std::move(owner.value()), std::move(subscription.value())));
}

Trace::Trace(Key, netlink::Socket owner, netlink::Subscription subscription)
    : owner_(std::move(owner)), subscription_(std::move(subscription)) {}

std::optional<TraceEvents> Trace::wait() {
  return netlink::wait_for_change<TraceEvents>(subscription_, [&] { return poll(); });
}

TraceEvents Trace::poll() {
  TraceEvents events;
  if (!subscription_.drain([&](ByteView datagram) { read_trace(datagram, events); })) events.missed = true;
  return events;
}

}  // namespace pointsman::nftables
