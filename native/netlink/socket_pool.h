#pragma once

#include <mutex>
#include <vector>

#include "netlink/socket.h"

namespace pointsman::netlink {

/// Open sockets between uses, for use from several threads. They are kept because closing one is slow: nf_tables then waits, with its lock
/// held, until what was deleted shortly before is freed, which takes an RCU grace period of ten milliseconds and more (nft_rcv_nl_event;
/// 100 times the transaction that changes one element).
class SocketPool {
 public:
  /// An idle socket, or a new one.
  Result<Socket> take();
  /// Only for a socket whose answers were all read. Any other is left to close.
  void give_back(Socket socket);

 private:
  static constexpr std::size_t kIdle = 4;

  std::mutex mutex_;
  std::vector<Socket> idle_;
};

}  // namespace pointsman::netlink
