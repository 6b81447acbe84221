#include "nftables/watch.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include <algorithm>

#include "netlink/attribute_reader.h"

namespace pointsman::nftables {

namespace {

// The table's name is the first attribute of every message about a table or something in it.
static_assert(NFTA_TABLE_NAME == 1 && NFTA_CHAIN_TABLE == 1 && NFTA_RULE_TABLE == 1 && NFTA_SET_TABLE == 1 &&
              NFTA_SET_ELEM_LIST_TABLE == 1 && NFTA_OBJ_TABLE == 1 && NFTA_FLOWTABLE_TABLE == 1);
constexpr std::uint16_t kTableName = 1;

std::string process_of(const netlink::Message& message) {
  std::optional<std::uint32_t> id;
  std::string name;
  netlink::AttributeReader reader(message.attributes());
  while (const auto attribute = reader.next()) {
    if (attribute->type == NFTA_GEN_PROC_PID) id = attribute->be32();
    if (attribute->type == NFTA_GEN_PROC_NAME) name = attribute->string();
  }
  return id ? name + "[" + std::to_string(*id) + "]" : std::string();
}

}  // namespace

void ForeignChange::merge(const ForeignChange& later) {
  ip = ip || later.ip;
  ip6 = ip6 || later.ip6;
  missed = missed || later.missed;
  if (!later.process.empty()) process = later.process;
}

void ChangeReader::read(ByteView datagram) {
  netlink::MessageReader reader(datagram);
  while (const auto message = reader.next()) read_message(*message);
  if (reader.malformed()) miss();
}

void ChangeReader::read_message(const netlink::Message& message) {
  if (message.type >> 8 != NFNL_SUBSYS_NFTABLES) return;
  if ((message.type & 0xff) == NFT_MSG_NEWGEN) {
    if (open_.any()) {
      open_.process = process_of(message);
      done_.merge(open_);
    }
    open_ = {};
    return;
  }
  const auto family = message.family();
  netlink::AttributeReader reader(message.attributes());
  const auto first = reader.next();
  if (!family || !first || first->type != kTableName) return miss();
  if (first->string() != table_) return;
  open_.ip = open_.ip || *family == NFPROTO_IPV4;
  open_.ip6 = open_.ip6 || *family == NFPROTO_IPV6;
}

ForeignChange ChangeReader::take() { return std::exchange(done_, {}); }

netlink::Result<std::unique_ptr<Watch>> Watch::open(std::string table, std::uint32_t ignored_ports) {
  auto subscription = netlink::Subscription::open(NETLINK_NETFILTER, {NFNLGRP_NFTABLES}, ignored_ports);
  if (!subscription.ok()) return subscription.error();
  return std::unique_ptr<Watch>(std::make_unique<Watch>(Key{}, std::move(subscription.value()), std::move(table)));
}

Watch::Watch(Key, netlink::Subscription subscription, std::string table)
    : subscription_(std::move(subscription)), reader_(std::move(table)) {}

std::optional<ForeignChange> Watch::wait() {
  return netlink::wait_for_change<ForeignChange>(subscription_, [&] { return poll(); });
}

ForeignChange Watch::poll() {
  if (gap_.exchange(false)) reader_.miss();
  if (!subscription_.drain([&](ByteView datagram) { reader_.read(datagram); })) reader_.miss();
  return reader_.take();
}

void Watch::pause() {
  const std::lock_guard lock(pausing_);
  if (pauses_++ == 0) subscription_.leave(NFNLGRP_NFTABLES);
}

void Watch::resume() {
  const std::lock_guard lock(pausing_);
  if (--pauses_ > 0) return;
  subscription_.join(NFNLGRP_NFTABLES);
  gap_ = true;
  subscription_.wake();
}

void Watches::add(const std::shared_ptr<Watch>& watch) {
  const std::lock_guard lock(mutex_);
  watches_.push_back(watch);
}

void Watches::remove(const std::shared_ptr<Watch>& watch) {
  const std::lock_guard lock(mutex_);
  std::erase(watches_, watch);
}

Watches::Pause::Pause(Watches& watches) {
  {
    const std::lock_guard lock(watches.mutex_);
    paused_ = watches.watches_;
  }
  for (const auto& watch : paused_) watch->pause();
}

Watches::Pause::~Pause() {
  for (const auto& watch : paused_) watch->resume();
}

}  // namespace pointsman::nftables
