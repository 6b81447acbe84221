#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "conntrack/flow_counter.h"
#include "test/check.h"

namespace {

using namespace pointsman;

conntrack::TranslatedFlow translated(std::uint64_t identity, std::uint64_t packets, std::uint8_t way = 1) {
  conntrack::TranslatedFlow flow;
  flow.identity = identity;
  flow.way[0] = way;
  flow.request = {packets, 100 * packets};
  flow.reply = {packets / 2, 50 * packets};
  return flow;
}

/// `flows packets bytes < packets bytes` of each way, in the order of ways.
std::string printed(conntrack::FlowSums sums) {
  std::ranges::sort(sums.rows, {}, [](const auto& row) { return row.way; });
  const auto print = [](const conntrack::Sum& sum) {
    return std::to_string(sum.flows) + " " + std::to_string(sum.request.packets) + " " + std::to_string(sum.request.bytes) + " < " +
           std::to_string(sum.reply.packets) + " " + std::to_string(sum.reply.bytes);
  };
  std::string text;
  for (const auto& row : sums.rows) text += (text.empty() ? "" : ", ") + print(row.sum);
  if (sums.left_out.flows > 0) text += " and " + print(sums.left_out);
  return text;
}

void list(conntrack::FlowLedger& ledger, const std::vector<conntrack::TranslatedFlow>& flows) {
  ledger.begin_listing();
  for (const auto& flow : flows) ledger.seen(flow);
  ledger.end_listing(true);
}

TEST(flows_of_before_count_from_then_on) {
  conntrack::FlowLedger ledger(9);
  list(ledger, {translated(1, 10)});
  CHECK_EQUAL(printed(ledger.take()), "");
  list(ledger, {translated(1, 14), translated(2, 2)});
  CHECK_EQUAL(printed(ledger.take()), "1 6 600 < 3 300");
  list(ledger, {translated(1, 14), translated(2, 2), translated(2, 2)});
  CHECK_EQUAL(printed(ledger.take()), "");
  ledger.ended(translated(1, 20));
  CHECK_EQUAL(printed(ledger.take()), "0 6 600 < 3 300");
}

TEST(flows_that_end_while_they_are_listed_count_once) {
  conntrack::FlowLedger ledger(9);
  list(ledger, {});
  ledger.begin_listing();
  ledger.seen(translated(1, 4));
  ledger.ended(translated(1, 6));
  ledger.ended(translated(2, 8));
  ledger.seen(translated(2, 8));
  ledger.end_listing(true);
  const auto sums = ledger.take();
  CHECK(sums.living == 0);
  CHECK_EQUAL(printed(sums), "2 14 1400 < 7 700");
  ledger.ended(translated(3, 2, 2));
  CHECK_EQUAL(printed(ledger.take()), "1 2 200 < 1 100");
}

TEST(flows_whose_end_was_missed_are_forgotten_after_two_listings) {
  conntrack::FlowLedger ledger(9);
  list(ledger, {});
  list(ledger, {translated(1, 4)});
  list(ledger, {});
  // A listing may miss one that moves.
  list(ledger, {translated(1, 6)});
  CHECK_EQUAL(printed(ledger.take()), "1 6 600 < 3 300");
  list(ledger, {});
  ledger.overrun();
  list(ledger, {});
  const auto sums = ledger.take();
  CHECK(sums.overruns == 1);
  CHECK(sums.living == 0);
  CHECK(ledger.take().overruns == 0);
}

TEST(flows_have_so_many_ways_and_counters_that_may_be_reset) {
  conntrack::FlowLedger ledger(2);
  list(ledger, {});
  list(ledger, {translated(1, 2, 1), translated(2, 2, 2), translated(3, 2, 3), translated(4, 2, 1)});
  CHECK_EQUAL(printed(ledger.take()), "2 4 400 < 2 200, 1 2 200 < 1 100 and 1 2 200 < 1 100");
  list(ledger, {translated(1, 1, 1), translated(2, 2, 2), translated(3, 2, 3), translated(4, 2, 1)});
  CHECK_EQUAL(printed(ledger.take()), "0 1 100 < 0 50");
}

}  // namespace
