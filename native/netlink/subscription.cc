#include "netlink/subscription.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "netlink/socket_pool.h"

namespace pointsman::netlink {

namespace {
// Room for the notifications of a ruleset of some size between two looks.
constexpr std::size_t kEventBuffer = std::size_t{4} * 1024 * 1024;
}  // namespace

Result<Subscription> Subscription::open(int protocol, std::initializer_list<int> groups, std::uint32_t ignored_ports) {
  auto socket = Socket::open(protocol);
  if (!socket.ok()) return socket.error();
  socket.value().reserve_receive(kEventBuffer);
  if (auto filtered = socket.value().ignore_ports(ignored_ports, SocketPool::kPortMask); !filtered.ok()) return filtered.error();
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
