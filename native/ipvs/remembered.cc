#include "ipvs/remembered.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>

#include "netlink/text.h"

namespace pointsman::ipvs {

namespace {

constexpr const char* kConnections = "/proc/net/ip_vs_conn";
/// Some 160,000 connections. The kernel walks its table from the start for each page that it writes.
constexpr std::size_t kMostBytes = std::size_t{16} << 20;
constexpr std::size_t kPortDigits = 4;
/// The kernel remembers clients of this port with 0 in its place, as FTP has connections of other ports (ip_vs_core.c).
constexpr std::uint16_t kFtp = 21;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// Takes the next word of a line.
std::string_view next_word(std::string_view& line) {
  constexpr const char* kBlanks = " \t\n";
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

/// Bytes of hexadecimal digits, which IPv6 addresses have colons between. Nothing unless there are as many as wanted.
std::optional<netlink::Bytes> hex_bytes(std::string_view text, std::size_t count) {
  netlink::Bytes bytes;
  while (!text.empty()) {
    if (!bytes.empty() && text.front() == ':') text.remove_prefix(1);
    const std::string_view digits = text.substr(0, 2);
    std::uint8_t byte = 0;
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (failure != std::errc() || digits.size() != 2 || end != digits.data() + 2) return {};
    bytes.push_back(byte);
    text.remove_prefix(2);
  }
  if (bytes.size() != count) return {};
  return bytes;
}

bool is_protocol(std::string_view word, std::uint16_t protocol) {
  switch (protocol) {
    case IPPROTO_TCP:
      return word == "TCP";
    case IPPROTO_UDP:
      return word == "UDP";
    case IPPROTO_SCTP:
      return word == "SCTP";
    default:
      return false;
  }
}

bool is_address(std::string_view word, netlink::ByteView address) {
  const auto bytes = hex_bytes(word, address.size());
  return bytes && std::equal(address.begin(), address.end(), bytes->begin());
}

bool is_port(std::string_view word, std::uint16_t port) {
  const auto bytes = hex_bytes(word, kPortDigits / 2);
  return bytes && bytes->front() == port >> 8 && bytes->back() == (port & 0xff);
}

}  // namespace

std::optional<netlink::Bytes> remembered_by(std::string_view line, const Service& service, netlink::ByteView client) {
  const std::uint16_t port = service.port == kFtp ? 0 : service.port;
  if (!is_protocol(next_word(line), service.protocol)) return {};
  if (!is_address(next_word(line), client) || !is_port(next_word(line), 0)) return {};
  if (!is_address(next_word(line), service.address) || !is_port(next_word(line), port)) return {};
  auto endpoint = hex_bytes(next_word(line), client.size());
  const auto endpoint_port = hex_bytes(next_word(line), kPortDigits / 2);
  if (!endpoint || !endpoint_port) return {};
  endpoint->insert(endpoint->end(), endpoint_port->begin(), endpoint_port->end());
  return endpoint;
}

netlink::Result<netlink::Bytes> remembered(const Service& service, netlink::ByteView client) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(kConnections, "re"));
  // Where ip_vs is not loaded it remembers no client.
  if (file == nullptr && errno == ENOENT) return netlink::Bytes();
  if (file == nullptr) return netlink::system_error(errno, std::string("cannot read ") + kConnections);
  std::array<char, 512> line;
  bool continues = false;
  for (std::size_t seen = 0; std::fgets(line.data(), line.size(), file.get()) != nullptr;) {
    const std::string_view text(line.data());
    seen += text.size();
    if (seen > kMostBytes)
      return netlink::system_error(EFBIG, std::string("there are too many connections in ") + kConnections);
    if (!continues) {
      auto endpoint = remembered_by(text, service, client);
      if (endpoint) return std::move(*endpoint);
    }
    continues = !text.ends_with('\n');
  }
  if (std::ferror(file.get()) != 0) return netlink::system_error(errno, std::string("cannot read ") + kConnections);
  return netlink::Bytes();
}

}  // namespace pointsman::ipvs
