#include "polling/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace pointsman::polling {

namespace {

/// More than any number has. Of a longer text only as much is compared.
constexpr std::size_t kMostBytes = 256;

bool is_as_seen(const SeenFile& seen) {
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

Files::Files(std::vector<SeenFile> seen) {
  files_.reserve(seen.size());
  for (SeenFile& each : seen) {
    const bool writable = is_writable(each.path);
    files_.push_back({std::move(each), writable});
  }
}

bool Files::is_changed() {
  return std::any_of(files_.begin(), files_.end(),
                     [](const File& file) { return !is_as_seen(file.seen) || (!file.writable && is_writable(file.seen.path)); });
}

}  // namespace pointsman::polling
