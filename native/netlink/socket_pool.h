#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "netlink/socket.h"

namespace pointsman::netlink {

/// Open sockets between uses, for use from several threads. They are kept because closing one is slow: nf_tables then waits, with its
/// lock held, until recently deleted objects are freed. That takes an RCU grace period of ten milliseconds and more (nft_rcv_nl_event;
/// 100 times the transaction that changes one element).
///
/// The ports of a pool's sockets have common bits, so that the kernel's notifications about their transactions can be recognized.
class SocketPool {
 public:
  /// `protocol`: NETLINK_*.
  explicit SocketPool(int protocol = NETLINK_NETFILTER);

  /// An idle socket, or a new one.
  Result<Socket> take();
  /// Only for a socket whose answers were all read. Any other is left to close.
  void give_back(Socket socket);

  /// Held while a transaction is sent. The kernel takes one at a time, and a thread that waits there keeps its processor busy
  /// (`mutex_spin_on_owner`, a twentieth of a start's CPU time with two families).
  std::mutex& transaction() { return transaction_; }

  /// What the ports of all sockets of this pool have in common, under `kPortMask`.
  std::uint32_t port_bits() const { return port_bits_; }
  static constexpr std::uint32_t kPortMask = 0xfffff000;

 private:
  Result<Socket> open();

  static constexpr std::size_t kIdle = 4;

  int protocol_;
  std::mutex mutex_;
  std::mutex transaction_;
  std::vector<Socket> idle_;
  std::uint32_t port_bits_ = 0;
  std::atomic<std::uint32_t> opened_ = 0;
};

}  // namespace pointsman::netlink
