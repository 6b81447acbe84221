#include "route/watch.h"

#include <linux/rtnetlink.h>
#include <net/if.h>

#include <array>

#include "route/message.h"

namespace pointsman::route {

namespace {

std::string name_of_link(std::uint32_t index) {
  std::array<char, IF_NAMESIZE> name{};
  return if_indextoname(index, name.data()) == nullptr ? "" : name.data();
}

}  // namespace

void Change::merge(const Change& later) {
  links.insert(later.links.begin(), later.links.end());
  missed = missed || later.missed;
}

void read_change(netlink::ByteView datagram, const std::function<std::string(std::uint32_t)>& name_of, Change& change) {
  netlink::MessageReader reader(datagram);
  while (const auto message = reader.next()) {
    if (message->type == RTM_NEWLINK || message->type == RTM_DELLINK) {
      const auto name = decode_link_name(*message);
      if (name) change.links.insert(*name);
      else change.missed = true;
    }
    if (message->type == RTM_NEWADDR || message->type == RTM_DELADDR) {
      const auto address = decode_address(*message);
      const std::string name = address.ok() ? name_of(address.value().link) : "";
      if (!address.ok()) change.missed = true;
      else if (!name.empty()) change.links.insert(name);
    }
  }
  if (reader.malformed()) change.missed = true;
}

netlink::Result<std::unique_ptr<Watch>> Watch::open(std::uint32_t ignored_ports) {
  auto subscription =
      netlink::Subscription::open(NETLINK_ROUTE, {RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR}, ignored_ports);
  if (!subscription.ok()) return subscription.error();
  return std::unique_ptr<Watch>(std::make_unique<Watch>(Key{}, std::move(subscription.value())));
}

std::optional<Change> Watch::wait() {
  return netlink::wait_for_change<Change>(subscription_, [&] { return poll(); });
}

Change Watch::poll() {
  Change change;
  if (!subscription_.drain([&](netlink::ByteView datagram) { read_change(datagram, name_of_link, change); })) change.missed = true;
  return change;
}

}  // namespace pointsman::route
