#include "probe/attempt.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <utility>

#include "probe/space.h"

namespace pointsman::probe {

namespace {

using netlink::Done;
using netlink::Result;
using netlink::Status;
using Clock = std::chrono::steady_clock;

constexpr int kRepeatMs = 300;
constexpr std::size_t kMaxAnswer = 512;
constexpr int kBacklog = 64;

struct Name {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Name name_of(const Place& place) {
  Name name;
  if (place.address.size() == 16) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(place.port);
    std::memcpy(&address.sin6_addr, place.address.data(), sizeof address.sin6_addr);
    std::memcpy(&name.storage, &address, sizeof address);
    name.length = sizeof address;
  } else {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(place.port);
    std::memcpy(&address.sin_addr, place.address.data(), sizeof address.sin_addr);
    std::memcpy(&name.storage, &address, sizeof address);
    name.length = sizeof address;
  }
  return name;
}

int open_socket(const Place& place) {
  return socket(place.address.size() == 16 ? AF_INET6 : AF_INET, (place.udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/// How long until a moment, at most `most`; 0: it is over.
int remaining(Clock::time_point end, int most) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, most));
}

/// Whether `events` came until then.
bool wait_for(int descriptor, short events, Clock::time_point end, int most) {
  for (;;) {
    pollfd waiting{descriptor, events, 0};
    const int ready = poll(&waiting, 1, remaining(end, most));
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

/// Reads what came; errno.
int read_answer(int descriptor, netlink::Bytes& answer) {
  std::array<std::uint8_t, kMaxAnswer> buffer{};
  const ssize_t length = recv(descriptor, buffer.data(), buffer.size(), 0);
  if (length < 0) return errno;
  answer.assign(buffer.begin(), buffer.begin() + length);
  return 0;
}

int reach_tcp(int descriptor, const Attempt& attempt, Clock::time_point end, netlink::Bytes& answer) {
  if (!wait_for(descriptor, POLLOUT, end, static_cast<int>(attempt.timeout_ms))) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  if (error != 0 || !attempt.reads) return error;
  if (!attempt.payload.empty() && send(descriptor, attempt.payload.data(), attempt.payload.size(), MSG_NOSIGNAL) < 0) return errno;
  if (!wait_for(descriptor, POLLIN, end, static_cast<int>(attempt.timeout_ms))) return ETIMEDOUT;
  return read_answer(descriptor, answer);
}

int reach_udp(int descriptor, const Attempt& attempt, Clock::time_point end, netlink::Bytes& answer) {
  while (remaining(end, kRepeatMs) > 0) {
    // An ICMP error for an earlier one is the error of the next call.
    if (send(descriptor, attempt.payload.data(), attempt.payload.size(), MSG_NOSIGNAL) < 0) return errno;
    if (wait_for(descriptor, POLLIN, end, kRepeatMs)) return read_answer(descriptor, answer);
  }
  return ETIMEDOUT;
}

std::uint16_t local_port(int descriptor) {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&name), &length) != 0) return 0;
  // In both families the port is in the same place.
  std::uint16_t port = 0;
  std::memcpy(&port, reinterpret_cast<const std::uint8_t*>(&name) + offsetof(sockaddr_in, sin_port), sizeof port);
  return ntohs(port);
}

}  // namespace

Result<Outcome> try_to_reach(int space, const Attempt& attempt) {
  Outcome outcome;
  const auto done = run_inside(space, [&]() -> Status {
    const Descriptor descriptor(open_socket(attempt.to));
    if (descriptor.number() < 0) return netlink::system_error(errno, "a socket");
    const Name name = name_of(attempt.to);
    const auto begin = Clock::now();
    const auto end = begin + std::chrono::milliseconds(attempt.timeout_ms);
    if (connect(descriptor.number(), name.get(), name.length) != 0 && errno != EINPROGRESS) outcome.error = errno;
    outcome.local_port = local_port(descriptor.number());
    if (outcome.error == 0) outcome.error = (attempt.to.udp ? reach_udp : reach_tcp)(descriptor.number(), attempt, end, outcome.answer);
    outcome.milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    return Done{};
  });
  if (!done.ok()) return done.error();
  return outcome;
}

Result<int> wait_for_clients(int space, const Place& place) {
  int number = -1;
  const auto done = run_inside(space, [&]() -> Status {
    Descriptor descriptor(open_socket(place));
    if (descriptor.number() < 0) return netlink::system_error(errno, "a socket");
    const Name name = name_of(place);
    if (bind(descriptor.number(), name.get(), name.length) != 0) return netlink::system_error(errno, "bind");
    if (!place.udp && listen(descriptor.number(), kBacklog) != 0) return netlink::system_error(errno, "listen");
    number = descriptor.take();
    return Done{};
  });
  if (!done.ok()) return done.error();
  return number;
}

}  // namespace pointsman::probe
