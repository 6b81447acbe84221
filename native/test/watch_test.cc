#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>

#include "netlink/message_writer.h"
#include "nftables/watch.h"
#include "test/check.h"

namespace {

using namespace pointsman;
using nftables::ChangeReader;
using nftables::ForeignChange;

void put(netlink::MessageWriter& writer, std::uint8_t message, std::uint8_t family, const char* table) {
  writer.begin_message(static_cast<std::uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | message), 0, 7, family);
  writer.put_string(NFTA_RULE_TABLE, table);
  writer.put_string(NFTA_RULE_CHAIN, "c");
  writer.end_message();
}

void put_generation(netlink::MessageWriter& writer, const char* process) {
  writer.begin_message(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWGEN, 0, 7, AF_UNSPEC);
  writer.put_be32(NFTA_GEN_ID, 9);
  writer.put_be32(NFTA_GEN_PROC_PID, 1234);
  writer.put_string(NFTA_GEN_PROC_NAME, process);
  writer.end_message();
}

}  // namespace

TEST(changes_count_when_their_transaction_ends) {
  ChangeReader reader("mine");
  netlink::MessageWriter first;
  put(first, NFT_MSG_NEWRULE, NFPROTO_IPV4, "mine");
  put(first, NFT_MSG_DELRULE, NFPROTO_IPV6, "other");
  reader.read(first.bytes());
  CHECK(!reader.take().any());
  netlink::MessageWriter second;
  put_generation(second, "nft");
  reader.read(second.bytes());
  const ForeignChange change = reader.take();
  CHECK(change.ip && !change.ip6 && !change.missed);
  CHECK_EQUAL(change.process, "nft[1234]");
  CHECK(!reader.take().any());
}

TEST(changes_of_other_tables_and_families_do_not_count) {
  ChangeReader reader("mine");
  netlink::MessageWriter writer;
  put(writer, NFT_MSG_NEWSETELEM, NFPROTO_IPV4, "other");
  put(writer, NFT_MSG_NEWSETELEM, NFPROTO_INET, "mine");
  put(writer, NFT_MSG_NEWSETELEM, NFPROTO_IPV4, "mine2");
  put_generation(writer, "nft");
  reader.read(writer.bytes());
  CHECK(!reader.take().any());
}

TEST(changes_are_gathered_with_the_last_process) {
  ChangeReader reader("mine");
  netlink::MessageWriter writer;
  put(writer, NFT_MSG_DELTABLE, NFPROTO_IPV4, "mine");
  put_generation(writer, "one");
  put(writer, NFT_MSG_NEWTABLE, NFPROTO_IPV6, "mine");
  put_generation(writer, "two");
  put(writer, NFT_MSG_NEWTABLE, NFPROTO_IPV6, "other");
  put_generation(writer, "three");
  reader.read(writer.bytes());
  const ForeignChange change = reader.take();
  CHECK(change.ip && change.ip6);
  CHECK_EQUAL(change.process, "two[1234]");
}

TEST(malformed_notifications_count_as_missed) {
  netlink::MessageWriter writer;
  put(writer, NFT_MSG_NEWRULE, NFPROTO_IPV4, "mine");
  put_generation(writer, "nft");
  const netlink::ByteView whole = writer.bytes();
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    ChangeReader reader("mine");
    reader.read(whole.first(length));
    const ForeignChange change = reader.take();
    CHECK(change.missed || !change.ip || length == whole.size());
  }
  netlink::MessageWriter bare;
  bare.begin_message(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE, 0, 7, NFPROTO_IPV4);
  bare.end_message();
  ChangeReader reader("mine");
  reader.read(bare.bytes());
  CHECK(reader.take().missed);
}

TEST(a_watch_is_woken_by_pauses_and_ends) {
  auto opened = nftables::Watch::open("mine", 0);
  // Without CAP_NET_ADMIN there is nothing to watch.
  if (!opened.ok()) return;
  const std::shared_ptr<nftables::Watch> watch(std::move(opened.value()));
  nftables::Watches watches;
  watches.add(watch);
  { const nftables::Watches::Pause pause(watches); }
  const auto change = watch->wait();
  CHECK(change && change->missed);
  watches.remove(watch);
  { const nftables::Watches::Pause pause(watches); }
  CHECK(!watch->poll().missed);
  watch->stop();
  CHECK(!watch->wait());
}
