#include "nftables/watch.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "netlink/attribute_reader.h"
#include "netlink/socket_pool.h"

namespace pointsman::nftables {

namespace {

// Room for the notifications of a ruleset of some size between two looks.
constexpr std::size_t kReceiveBuffer = std::size_t{4} * 1024 * 1024;

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
  auto socket = netlink::Socket::open();
  if (!socket.ok()) return socket.error();
  socket.value().reserve_receive(kReceiveBuffer);
  if (auto filtered = socket.value().ignore_ports(ignored_ports, netlink::SocketPool::kPortMask); !filtered.ok()) {
    return filtered.error();
  }
  if (auto joined = socket.value().join(NFNLGRP_NFTABLES); !joined.ok()) return joined.error();
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) return netlink::system_error(errno, "cannot open an event descriptor");
  return std::unique_ptr<Watch>(std::make_unique<Watch>(Key{}, std::move(socket.value()), std::move(table), wake));
}

Watch::Watch(Key, netlink::Socket socket, std::string table, int wake)
    : socket_(std::move(socket)), reader_(std::move(table)), wake_(wake) {}

Watch::~Watch() { ::close(wake_); }

std::optional<ForeignChange> Watch::wait() {
  for (;;) {
    if (stopped_) return std::nullopt;
    if (const ForeignChange change = poll(); change.any()) return change;
    pollfd ready[] = {{socket_.descriptor(), POLLIN, 0}, {wake_, POLLIN, 0}};
    ::poll(ready, 2, -1);
    eventfd_t woken = 0;
    eventfd_read(wake_, &woken);
  }
}

ForeignChange Watch::poll() {
  if (gap_.exchange(false)) reader_.miss();
  for (;;) {
    auto datagram = socket_.receive(false);
    if (datagram.ok()) {
      reader_.read(datagram.value());
      continue;
    }
    if (datagram.error().code == EAGAIN) return reader_.take();
    // Above all ENOBUFS: more was sent than the buffer holds. What is still in it is read.
    reader_.miss();
    if (datagram.error().code != ENOBUFS && datagram.error().kind == netlink::ErrorKind::kSystem) return reader_.take();
  }
}

void Watch::stop() {
  stopped_ = true;
  wake();
}

void Watch::pause() {
  const std::lock_guard lock(pausing_);
  if (pauses_++ == 0) static_cast<void>(socket_.leave(NFNLGRP_NFTABLES));
}

void Watch::resume() {
  const std::lock_guard lock(pausing_);
  if (--pauses_ > 0) return;
  static_cast<void>(socket_.join(NFNLGRP_NFTABLES));
  gap_ = true;
  wake();
}

void Watch::wake() { eventfd_write(wake_, 1); }

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
