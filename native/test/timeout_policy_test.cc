#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_cttimeout.h>
#include <netinet/in.h>

#include <string>

#include "conntrack/timeout_policy.h"
#include "netlink/answer.h"
#include "test/check.h"

namespace {

using namespace pointsman;
using conntrack::Family;
using conntrack::TimeoutPolicy;
using netlink::Bytes;

TimeoutPolicy sample() {
  TimeoutPolicy policy;
  policy.name = "Kt01";
  policy.family = Family::kIPv6;
  policy.protocol = IPPROTO_UDP;
  policy.seconds = {2, 180};
  return policy;
}

/// What the kernel answers is made of the same attributes as what it is sent.
netlink::Result<std::optional<TimeoutPolicy>> decoded(const Bytes& bytes) {
  netlink::MessageReader reader(bytes);
  return conntrack::decode_policy(*reader.next());
}

TEST(a_timeout_policy_is_read_as_it_is_written) {
  const auto policy = decoded(conntrack::encode_set_policy(7, sample()));
  CHECK(policy.ok() && policy.value());
  if (!policy.ok() || !policy.value()) return;
  CHECK_EQUAL(policy.value()->name, "Kt01");
  CHECK(policy.value()->family == Family::kIPv6);
  CHECK(policy.value()->protocol == IPPROTO_UDP);
  CHECK((policy.value()->seconds == std::vector<std::uint32_t>{2, 180}));
}

TEST(a_timeout_policy_is_made_or_replaced_by_one_message) {
  const Bytes bytes = conntrack::encode_set_policy(7, sample());
  netlink::MessageReader reader(bytes);
  const auto message = reader.next();
  CHECK(message && message->type == (NFNL_SUBSYS_CTNETLINK_TIMEOUT << 8 | IPCTNL_MSG_TIMEOUT_NEW));
  CHECK(message && message->flags == (NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE));
  CHECK(message && message->sequence == 7 && !reader.next());
}

TEST(policies_of_other_families_are_passed_over) {
  TimeoutPolicy policy = sample();
  policy.family = static_cast<Family>(7);
  const auto read = decoded(conntrack::encode_set_policy(1, policy));
  CHECK(read.ok() && !read.value());
}

TEST(a_malformed_timeout_policy_is_an_error) {
  TimeoutPolicy nameless = sample();
  nameless.name = "";
  CHECK(!decoded(conntrack::encode_set_policy(1, nameless)).ok());
  CHECK(!decoded(conntrack::encode_list_policies(1)).ok());
  Bytes cut = conntrack::encode_set_policy(1, sample());
  // The last state has two bytes.
  cut[cut.size() - 8] = 6;
  CHECK(!decoded(cut).ok());
}

}  // namespace
