#include "relay/way.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace pointsman::relay {

namespace {

/// What a pipe holds by default (pipe(7)).
constexpr std::size_t kPipeBytes = 64 * 1024;
/// Pipes full of one direction before others have their turn.
constexpr int kPipesOfTurn = 16;
/// Kept without being in use.
constexpr std::size_t kSparePipes = 16;

ssize_t move_bytes(const Descriptor& from, const Descriptor& to, std::size_t most) {
  for (;;) {
    const ssize_t moved = splice(from.number(), nullptr, to.number(), nullptr, most, SPLICE_F_NONBLOCK);
    if (moved >= 0 || errno != EINTR) return moved;
  }
}

}  // namespace

Pipe Pipes::take() {
  Pipe pipe;
  if (!empty_.empty()) {
    pipe = std::move(empty_.back());
    empty_.pop_back();
    return pipe;
  }
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return pipe;
  pipe.out.set(ends[0]);
  pipe.in.set(ends[1]);
  return pipe;
}

void Pipes::give(Pipe pipe) {
  if (empty_.size() < kSparePipes) empty_.push_back(std::move(pipe));
}

Way::Turn Way::carry(const Descriptor& from, const Descriptor& to, Pipes& pipes) {
  for (int carried = 0; carried < kPipesOfTurn; ++carried) {
    // The pipe is empty whenever bytes are put into it: EAGAIN then means that the socket has none.
    if (held_ == 0 && !(readable_ && !over_)) return Turn::kWaits;
    if (held_ == 0) {
      if (const Turn turn = fill(from, to, pipes); turn != Turn::kGoesOn) return turn;
    }
    if (!writable_) return Turn::kWaits;
    if (const Turn turn = empty(to, pipes); turn != Turn::kGoesOn) return turn;
  }
  return Turn::kGoesOn;
}

Way::Turn Way::fill(const Descriptor& from, const Descriptor& to, Pipes& pipes) {
  pipe_ = pipes.take();
  if (!pipe_.in.open()) return Turn::kLacksPipe;
  const ssize_t moved = move_bytes(from, pipe_.in, kPipeBytes);
  if (moved > 0) {
    held_ = static_cast<std::size_t>(moved);
    return Turn::kGoesOn;
  }
  const bool failed = moved < 0 && errno != EAGAIN;
  pipes.give(std::move(pipe_));
  if (failed) return Turn::kFailed;
  readable_ = false;
  over_ = moved == 0;
  // It fails where the other side is gone, which that side's own event reports.
  if (over_) shutdown(to.number(), SHUT_WR);
  return Turn::kWaits;
}

Way::Turn Way::empty(const Descriptor& to, Pipes& pipes) {
  while (held_ > 0) {
    const ssize_t moved = move_bytes(pipe_.out, to, held_);
    if (moved <= 0) {
      if (moved == 0 || errno != EAGAIN) return Turn::kFailed;
      writable_ = false;
      return Turn::kWaits;
    }
    held_ -= static_cast<std::size_t>(moved);
  }
  pipes.give(std::move(pipe_));
  return Turn::kGoesOn;
}

}  // namespace pointsman::relay
