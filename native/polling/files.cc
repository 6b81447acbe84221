#include "sysctl/watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace pointsman::sysctl {

namespace {

/// More than any number has. Of a longer text only as much is compared.
constexpr std::size_t kMostBytes = 256;

bool is_as_seen(const Seen& seen) {
  const int descriptor = ::open(seen.path.c_str(), O_RDONLY | O_CLOEXEC);
  std::array<char, kMostBytes> buffer{};
  const ssize_t length = descriptor < 0 ? -1 : ::read(descriptor, buffer.data(), buffer.size());
  if (descriptor >= 0) ::close(descriptor);
  if (length < 0) return !seen.text;
  std::string_view text(buffer.data(), static_cast<std::size_t>(length));
  text = text.substr(0, text.find_last_not_of(" \t\n") + 1);
  return seen.text && text == std::string_view(*seen.text).substr(0, kMostBytes);
}

/// By the effective user and its capabilities, as open(2) judges.
bool is_writable(const std::string& path) { return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0; }

}  // namespace

Watch::Watch(std::vector<Seen> seen, std::chrono::milliseconds period) : period_(period) {
  files_.reserve(seen.size());
  for (Seen& each : seen) {
    const bool writable = is_writable(each.path);
    files_.push_back({std::move(each), writable});
  }
}

std::optional<Change> Watch::wait() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    woken_.wait_for(lock, period_, [this] { return stopped_; });
    if (stopped_ || !differs()) continue;
    if (std::exchange(told_, true)) woken_.wait(lock, [this] { return stopped_; });
    else return Change{true};
  }
  return std::nullopt;
}

void Watch::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  woken_.notify_all();
}

bool Watch::differs() const {
  for (const File& file : files_) {
    if (!is_as_seen(file.seen) || is_writable(file.seen.path) != file.writable) return true;
  }
  return false;
}

}  // namespace pointsman::sysctl
