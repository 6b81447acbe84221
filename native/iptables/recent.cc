#include "iptables/recent.h"

#include <time.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <sstream>

#include "iptables/file.h"

namespace pointsman::iptables {

namespace {

constexpr const char* kFolder = "/proc/net/xt_recent/";
constexpr std::uint64_t kNanoseconds = 1'000'000'000;
/// The kernel's count begins this long before it wraps at 32 bits, so that what cannot bear that shows soon (INITIAL_JIFFIES).
constexpr std::uint64_t kSecondsToWrap = 300;

struct Tick {
  std::uint64_t per_second = 0;
  /// Since the start of the kernel.
  std::uint64_t now = 0;
};

/// The kernel reports the length of a tick as the resolution of its coarse clocks, which jiffies go with.
std::optional<Tick> current_tick() {
  timespec resolution{};
  timespec now{};
  if (clock_getres(CLOCK_MONOTONIC_COARSE, &resolution) != 0 || clock_gettime(CLOCK_MONOTONIC_COARSE, &now) != 0) return {};
  const auto length = static_cast<std::uint64_t>(resolution.tv_nsec);
  if (resolution.tv_sec != 0 || length == 0) return {};
  const std::uint64_t elapsed = static_cast<std::uint64_t>(now.tv_sec) * kNanoseconds + static_cast<std::uint64_t>(now.tv_nsec);
  return Tick{(kNanoseconds + length / 2) / length, elapsed / length};
}

/// In jiffies, so many seconds ago.
std::optional<std::uint64_t> moment_before(std::uint32_t seconds) {
  const auto tick = current_tick();
  if (!tick) return {};
  const std::uint64_t first = (std::uint64_t{1} << 32) - kSecondsToWrap * tick->per_second;
  const std::uint64_t ago = seconds * tick->per_second;
  return first + (tick->now > ago ? tick->now - ago : 0);
}

}  // namespace

std::string recent_address(netlink::ByteView address) {
  const bool wide = address.size() == 16;
  std::string text;
  for (std::size_t index = 0; index < address.size(); ++index) {
    std::array<char, 4> byte{};
    std::snprintf(byte.data(), byte.size(), wide ? "%02x" : "%u", static_cast<unsigned>(address[index]));
    if (index > 0 && (!wide || index % 2 == 0)) text += wide ? ':' : '.';
    text += byte.data();
  }
  return text;
}

bool seen_since(std::istream& list, const std::string& address, std::uint64_t moment) {
  const std::string wanted = "src=" + address;
  for (std::string line; std::getline(list, line);) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word != wanted) continue;
    while (words >> word && word != "last_seen:") {
    }
    std::uint64_t last = 0;
    return static_cast<bool>(words >> last) && last >= moment;
  }
  return false;
}

netlink::Result<std::optional<std::uint32_t>, Failure> first_remembering(const std::vector<std::string>& lists,
                                                                         netlink::ByteView address, std::uint32_t seconds) {
  Failure failure;
  const auto moment = moment_before(seconds);
  if (!moment) {
    failure.reason = "the kernel does not tell the length of its ticks";
    failure.error_number = errno;
    return failure;
  }
  const std::string text = recent_address(address);
  for (std::uint32_t index = 0; index < lists.size(); ++index) {
    const auto content = read_file(kFolder + lists[index]);
    if (content.ok()) {
      std::istringstream list(content.value());
      if (seen_since(list, text, *moment)) return std::optional<std::uint32_t>(index);
    } else if (content.error() != ENOENT) {
      failure.reason = "cannot read " + (kFolder + lists[index]);
      failure.error_number = content.error();
      return failure;
    }
  }
  return std::optional<std::uint32_t>();
}

}  // namespace pointsman::iptables
