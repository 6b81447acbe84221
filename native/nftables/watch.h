#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "netlink/answer.h"
#include "netlink/byte_order.h"
#include "netlink/result.h"
#include "netlink/subscription.h"
#include "nftables/datatype.h"

namespace pointsman::nftables {

/// What others did to a watched table.
struct ForeignChange {
  bool ip = false;
  bool ip6 = false;
  /// Something may have happened unseen.
  bool missed = false;
  /// The process that committed last, as `nft[1234]`; its id is that of the initial PID namespace. Empty when unknown.
  std::string process;

  bool any() const { return ip || ip6 || missed; }
  void merge(const ForeignChange& later);
};

/// Gathers from notifications what concerns one table of the families ip and ip6. Notifications of one transaction end with NFT_MSG_NEWGEN.
class ChangeReader {
 public:
  explicit ChangeReader(std::string table) : table_(std::move(table)) {}

  /// Reads one datagram of notifications; what is malformed counts as missed.
  void read(ByteView datagram);
  void miss() { done_.missed = true; }
  /// What happened in transactions that were seen to their end, once.
  ForeignChange take();

 private:
  void read_message(const netlink::Message& message);

  std::string table_;
  ForeignChange open_;
  ForeignChange done_;
};

/// A subscription to changes of a table by anyone but the owner of the ports that `ignored_ports` and SocketPool::kPortMask describe, in
/// the network namespace of the calling thread. While any process listens, nf_tables composes a notification for every object and element
/// of a transaction. That takes several times as long as the transaction itself: pause it around large ones.
class Watch {
  struct Key {};

 public:
  static netlink::Result<std::unique_ptr<Watch>> open(std::string table, std::uint32_t ignored_ports);
  Watch(Key, netlink::Subscription subscription, std::string table);

  /// Blocks until something happens; nothing after `stop`.
  std::optional<ForeignChange> wait();
  /// What has been notified by now, without waiting.
  ForeignChange poll();

  /// From any thread: `wait` answers nothing from now on.
  void stop() { subscription_.stop(); }
  /// From any thread. What happens in between is reported as missed. Calls nest.
  void pause();
  void resume();

 private:
  netlink::Subscription subscription_;
  ChangeReader reader_;
  std::atomic<bool> gap_ = false;
  std::mutex pausing_;
  int pauses_ = 0;
};

/// The watches that large transactions pause, for use from several threads.
class Watches {
 public:
  void add(const std::shared_ptr<Watch>& watch);
  void remove(const std::shared_ptr<Watch>& watch);

  /// Pauses every watch for as long as it lives.
  class Pause {
   public:
    explicit Pause(Watches& watches);
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    ~Pause();

   private:
    std::vector<std::shared_ptr<Watch>> paused_;
  };

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Watch>> watches_;
};

}  // namespace pointsman::nftables
