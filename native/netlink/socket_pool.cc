#include "netlink/socket_pool.h"

namespace pointsman::netlink {

Result<Socket> SocketPool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Socket socket = std::move(idle_.back());
      idle_.pop_back();
      return socket;
    }
  }
  return Socket::open();
}

void SocketPool::give_back(Socket socket) {
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kIdle) idle_.push_back(std::move(socket));
}

}  // namespace pointsman::netlink
