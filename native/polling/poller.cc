#include "polling/poller.h"

#include <algorithm>
#include <utility>

namespace pointsman::polling {

namespace {

/// The next multiple of the period.
Poller::Clock::time_point next_due(Poller::Clock::time_point now, std::chrono::milliseconds period) {
  const auto elapsed = now.time_since_epoch();
  return now + (period - elapsed % period);
}

}  // namespace

Poller::~Poller() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  woken_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::uint64_t Poller::add(std::unique_ptr<Subject> subject, std::chrono::milliseconds period, std::function<void()> on_change) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t id = ++last_id_;
  entries_.emplace(id, Entry{std::move(subject), period, next_due(Clock::now(), period), std::move(on_change)});
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  woken_.notify_all();
  return id;
}

void Poller::remove(std::uint64_t id) {
  // The thread may wake once for nothing: that costs less than to wake it now.
  const std::lock_guard lock(mutex_);
  entries_.erase(id);
}

void Poller::run() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (entries_.empty()) {
      woken_.wait(lock);
      continue;
    }
    const auto earlier = [](const auto& one, const auto& other) { return one.second.due < other.second.due; };
    const auto due = std::min_element(entries_.begin(), entries_.end(), earlier)->second.due;
    if (woken_.wait_until(lock, due) == std::cv_status::timeout) look(Clock::now());
  }
}

void Poller::look(Clock::time_point now) {
  for (auto at = entries_.begin(); at != entries_.end();) {
    Entry& entry = at->second;
    if (entry.due > now) {
      ++at;
    } else if (entry.subject->is_changed()) {
      entry.on_change();
      at = entries_.erase(at);
    } else {
      entry.due = next_due(now, entry.period);
      ++at;
    }
  }
}

}  // namespace pointsman::polling
