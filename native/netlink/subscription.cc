#include "netlink/subscription.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "netlink/socket_pool.h"

namespace pointsman::netlink {

Result<Subscription> Subscription::open(int protocol, std::initializer_list<int> groups, std::optional<std::uint32_t> ignored_ports,
                                        std::size_t buffer) {
  auto socket = Socket::open(protocol);
  if (!socket.ok()) return socket.error();
  socket.value().reserve_receive(buffer);
  if (ignored_ports) {
    if (auto filtered = socket.value().ignore_ports(*ignored_ports, SocketPool::kPortMask); !filtered.ok()) return filtered.error();
  }
  for (const int group : groups) {
    if (auto joined = socket.value().join(group); !joined.ok()) return joined.error();
  }
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) return system_error(errno, "cannot open an event descriptor");
  return Subscription(std::move(socket.value()), wake);
}

Subscription::Subscription(Subscription&& other) noexcept
    : socket_(std::move(other.socket_)), wake_(std::exchange(other.wake_, -1)), stopped_(other.stopped_.load()) {}

Subscription::~Subscription() {
  if (wake_ >= 0) ::close(wake_);
}

void Subscription::wait() {
  pollfd ready[] = {{socket_.descriptor(), POLLIN, 0}, {wake_, POLLIN, 0}};
  ::poll(ready, 2, -1);
  eventfd_t woken = 0;
  eventfd_read(wake_, &woken);
}

void Subscription::rest(std::chrono::milliseconds duration) {
  pollfd ready{wake_, POLLIN, 0};
  ::poll(&ready, 1, static_cast<int>(duration.count()));
}

bool Subscription::drain(const std::function<void(ByteView)>& on_datagram) {
  bool complete = true;
  for (;;) {
    auto datagram = socket_.receive(false);
    if (datagram.ok()) {
      on_datagram(datagram.value());
      continue;
    }
    if (datagram.error().code == EAGAIN) return complete;
    // Above all ENOBUFS: more was sent than the buffer holds. What is still in it is read.
    complete = false;
    if (datagram.error().code != ENOBUFS && datagram.error().kind == ErrorKind::kSystem) return complete;
  }
}

void Subscription::wake() { eventfd_write(wake_, 1); }

void Subscription::stop() {
  stopped_ = true;
  wake();
}

}  // namespace pointsman::netlink
