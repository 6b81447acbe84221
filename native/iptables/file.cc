#include "iptables/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/descriptor.h"

namespace pointsman::iptables {

netlink::Result<std::string, int> read_file(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) return errno;
  std::string text;
  std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t length = read(file.number(), buffer.data(), buffer.size());
    if (length == 0) return text;
    if (length > 0) {
      text.append(buffer.data(), static_cast<std::size_t>(length));
    } else if (errno != EINTR) {
      return errno;
    }
  }
}

}  // namespace pointsman::iptables
