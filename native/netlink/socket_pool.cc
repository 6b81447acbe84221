#include "netlink/socket_pool.h"

#include <sys/random.h>
#include <unistd.h>

#include <cerrno>

namespace pointsman::netlink {

namespace {
// The kernel gives a socket its process's id, below 2^22, or a number with the highest bit; ports with this bit alone are free.
constexpr std::uint32_t kUnassigned = 0x40000000;
}  // namespace

SocketPool::SocketPool(int protocol) : protocol_(protocol) {
  std::uint32_t random = static_cast<std::uint32_t>(getpid());
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random) random *= 2654435761U;
  port_bits_ = kUnassigned | (random & kPortMask & (kUnassigned - 1));
}

Result<Socket> SocketPool::open() {
  for (std::uint32_t attempt = 0;; ++attempt) {
    auto socket = Socket::open(protocol_, port_bits_ | (opened_++ & ~kPortMask));
    if (socket.ok() || socket.error().code != EADDRINUSE || attempt == ~kPortMask) return socket;
  }
}

Result<Socket> SocketPool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Socket socket = std::move(idle_.back());
      idle_.pop_back();
      return socket;
    }
  }
  return open();
}

void SocketPool::give_back(Socket socket) {
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kIdle) idle_.push_back(std::move(socket));
}

}  // namespace pointsman::netlink
