#include "relay/relay.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <deque>
#include <map>
#include <utility>

#include "relay/way.h"

namespace pointsman::relay {

namespace {

constexpr int kEventsOfTurn = 64;
/// Connections one after the other do not start a thread each.
constexpr int kLingerMs = 1000;
/// Sockets have the places `2 * id` and the next one.
constexpr std::uint64_t kWakePlace = 0;

bool watch_place(const Descriptor& epoll, const Descriptor& descriptor, std::uint32_t events, std::uint64_t place) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = place;
  return epoll_ctl(epoll.number(), EPOLL_CTL_ADD, descriptor.number(), &event) == 0;
}

}  // namespace

/// What the thread works with, which goes with it.
class Relay::Loop {
 public:
  Loop(Descriptor epoll, const std::function<void(const End&)>& on_end) : epoll_(std::move(epoll)), on_end_(on_end) {}

  /// Waits for events and handles them. Answers whether there may be orders.
  bool turn() {
    std::array<epoll_event, kEventsOfTurn> events;
    const int timeout = !waiting_.empty() ? 0 : pairs_.empty() ? kLingerMs : -1;
    const int count = epoll_wait(epoll_.number(), events.data(), kEventsOfTurn, timeout);
    bool is_woken = idle();
    for (int index = 0; index < count; ++index) {
      const epoll_event& event = events[static_cast<std::size_t>(index)];
      if (event.data.u64 == kWakePlace) is_woken = true;
      else notice(event.data.u64, event.events);
    }
    for (std::size_t left = waiting_.size(); left > 0; --left) {
      const std::uint64_t id = waiting_.front();
      waiting_.pop_front();
      serve(id);
    }
    return is_woken;
  }

  bool idle() const { return pairs_.empty(); }

  void admit(Added added) {
    Pair& pair = pairs_[added.id];
    pair.sockets = std::move(added.sockets);
    for (std::size_t side = 0; side < pair.sockets.size(); ++side) {
      if (watch_place(epoll_, pair.sockets[side], EPOLLIN | EPOLLOUT | EPOLLET, 2 * added.id + side)) continue;
      reset(added.id, errno);
      return;
    }
  }

  /// The peers learn that the connection did not end by itself.
  void reset(std::uint64_t id, int lack = 0) {
    const auto at = pairs_.find(id);
    if (at == pairs_.end()) return;
    const linger none{1, 0};
    for (const Descriptor& socket : at->second.sockets) setsockopt(socket.number(), SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    pairs_.erase(at);
    on_end_({id, lack});
  }

  void reset_all() {
    while (!pairs_.empty()) reset(pairs_.begin()->first);
  }

 private:
  struct Pair {
    Sockets sockets;
    /// Each begins at the socket of its place.
    std::array<Way, 2> ways;
    bool failed = false;
    bool waits = false;
  };

  void notice(std::uint64_t place, std::uint32_t events) {
    const std::uint64_t id = place / 2;
    const auto at = pairs_.find(id);
    if (at == pairs_.end()) return;
    Pair& pair = at->second;
    const std::size_t side = place % 2;
    if ((events & EPOLLERR) != 0) pair.failed = true;
    if ((events & EPOLLIN) != 0) pair.ways[side].set_readable();
    if ((events & EPOLLOUT) != 0) pair.ways[1 - side].set_writable();
    queue(id, pair);
  }

  void queue(std::uint64_t id, Pair& pair) {
    if (!std::exchange(pair.waits, true)) waiting_.push_back(id);
  }

  void serve(std::uint64_t id) {
    const auto at = pairs_.find(id);
    if (at == pairs_.end()) return;
    Pair& pair = at->second;
    pair.waits = false;
    bool goes_on = false;
    for (std::size_t side = 0; side < pair.ways.size(); ++side) {
      const Way::Turn turn = pair.ways[side].carry(pair.sockets[side], pair.sockets[1 - side], pipes_);
      if (turn == Way::Turn::kLacksPipe) return reset(id, errno);
      pair.failed = pair.failed || turn == Way::Turn::kFailed;
      goes_on = goes_on || turn == Way::Turn::kGoesOn;
    }
    if (goes_on) return queue(id, pair);
    // Bytes that came before a reset have been carried.
    if (pair.failed) return reset(id);
    if (!pair.ways[0].over() || !pair.ways[1].over()) return;
    pairs_.erase(at);
    on_end_({id, 0});
  }

  Descriptor epoll_;
  const std::function<void(const End&)>& on_end_;
  std::map<std::uint64_t, Pair> pairs_;
  /// Pairs with something to do, in turn.
  std::deque<std::uint64_t> waiting_;
  Pipes pipes_;
};

Relay::~Relay() {
  {
    const std::lock_guard lock(mutex_);
    orders_.stop = true;
    wake();
  }
  join();
}

Result<std::uint64_t, int> Relay::add(int one, int other) {
  Added added{last_id_ + 1, {Descriptor(fcntl(one, F_DUPFD_CLOEXEC, 0)), Descriptor(fcntl(other, F_DUPFD_CLOEXEC, 0))}};
  for (const Descriptor& socket : added.sockets) {
    if (!socket.open() || fcntl(socket.number(), F_SETFL, O_NONBLOCK) != 0) return errno;
  }
  const std::lock_guard lock(mutex_);
  if (!wake_.open()) {
    if (const int error = start(); error != 0) return error;
  }
  orders_.added.push_back(std::move(added));
  wake();
  return ++last_id_;
}

void Relay::end(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  if (!wake_.open()) return;
  orders_.ended.push_back(id);
  wake();
}

int Relay::start() {
  // One that ran before has taken its last orders.
  join();
  epoll_.set(epoll_create1(EPOLL_CLOEXEC));
  Descriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_.open() || !wake.open() || !watch_place(epoll_, wake, EPOLLIN, kWakePlace)) return errno;
  pthread_t thread{};
  // std::thread would end the process where there may be no more threads.
  const auto run = [](void* relay) -> void* {
    static_cast<Relay*>(relay)->run();
    return nullptr;
  };
  if (const int error = pthread_create(&thread, nullptr, run, this); error != 0) return error;
  thread_ = thread;
  wake_ = std::move(wake);
  return 0;
}

void Relay::join() {
  if (thread_) pthread_join(*thread_, nullptr);
  thread_.reset();
}

void Relay::wake() const {
  if (wake_.open()) eventfd_write(wake_.number(), 1);
}

void Relay::run() {
  // A splice to a socket whose peer is gone sends this signal. Node ignores it, not every program does.
  sigset_t broken_pipe;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
  Loop loop(std::move(epoll_), on_end_);
  for (bool goes_on = true; goes_on;) {
    if (loop.turn()) goes_on = obey(loop);
  }
}

bool Relay::obey(Loop& loop) {
  Orders orders;
  {
    const std::lock_guard lock(mutex_);
    eventfd_t woken = 0;
    eventfd_read(wake_.number(), &woken);
    std::swap(orders, orders_);
    if (loop.idle() && orders.added.empty()) orders.stop = true;
    if (orders.stop) wake_.close();
  }
  for (Added& each : orders.added) loop.admit(std::move(each));
  for (const std::uint64_t id : orders.ended) loop.reset(id);
  if (orders.stop) loop.reset_all();
  return !orders.stop;
}

}  // namespace pointsman::relay
