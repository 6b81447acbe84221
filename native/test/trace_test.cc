#include "nftables/trace.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "netlink/message_writer.h"
#include "test/check.h"

namespace {

using namespace pointsman;
using nftables::read_trace;
using nftables::TraceEvents;

void put_event(netlink::MessageWriter& writer, std::uint8_t family, bool policy) {
  writer.begin_message(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_TRACE, 0, 7, family);
  writer.put_be32(NFTA_TRACE_ID, 5);
  writer.put_string(NFTA_TRACE_TABLE, "kube-proxy");
  writer.put_string(NFTA_TRACE_CHAIN, "dispatch");
  if (policy) {
    writer.put_be32(NFTA_TRACE_TYPE, NFT_TRACETYPE_POLICY);
    writer.put_be32(NFTA_TRACE_POLICY, NF_DROP);
  } else {
    writer.put_be32(NFTA_TRACE_TYPE, NFT_TRACETYPE_RULE);
    writer.put_be64(NFTA_TRACE_RULE_HANDLE, 9);
    writer.nest(NFTA_TRACE_VERDICT, [&] { nftables::write_verdict(writer, nftables::Verdict{NFT_GOTO, "refuse"}); });
    writer.put_be32(NFTA_TRACE_IIF, 1);
    writer.put_bytes(NFTA_TRACE_NETWORK_HEADER, netlink::Bytes{0x45, 0});
  }
  writer.end_message();
}

}  // namespace

TEST(reports_of_traced_packets_are_read) {
  netlink::MessageWriter writer;
  put_event(writer, NFPROTO_IPV6, false);
  put_event(writer, NFPROTO_BRIDGE, false);
  put_event(writer, NFPROTO_INET, true);
  TraceEvents trace;
  read_trace(writer.bytes(), trace);
  CHECK(!trace.missed);
  CHECK_EQUAL(trace.events.size(), 2u);
  const auto& rule = trace.events[0];
  CHECK(rule.id == 5 && rule.family == nftables::Family::kIp6 && rule.handle == 9u && rule.input == 1u && !rule.output);
  CHECK_EQUAL(rule.table, "kube-proxy");
  CHECK_EQUAL(rule.chain, "dispatch");
  CHECK_EQUAL(nftables::verdict_text(*rule.verdict), "goto refuse");
  CHECK_EQUAL(rule.network.size(), 2u);
  const auto& policy = trace.events[1];
  CHECK(policy.family == nftables::Family::kInet && !policy.handle && policy.network.empty());
  CHECK_EQUAL(nftables::verdict_text(*policy.verdict), "drop");
}

TEST(reports_that_are_cut_off_or_too_many_count_as_missed) {
  netlink::MessageWriter writer;
  put_event(writer, NFPROTO_IPV4, false);
  TraceEvents cut;
  read_trace(writer.bytes().first(writer.bytes().size() - 4), cut);
  CHECK(cut.missed && cut.events.empty());
  TraceEvents many;
  for (std::size_t count = 0; count <= TraceEvents::kMost; ++count) read_trace(writer.bytes(), many);
  CHECK(many.missed);
  CHECK_EQUAL(many.events.size(), TraceEvents::kMost);
}
