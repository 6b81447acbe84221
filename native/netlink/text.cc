#include "netlink/text.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>

namespace pointsman::netlink {

namespace {
constexpr std::size_t kIPv4 = 4;
constexpr std::size_t kIPv6 = 16;
}  // namespace

std::string print_address(ByteView address) {
  if (address.size() != kIPv4 && address.size() != kIPv6) return "?";
  std::array<char, INET6_ADDRSTRLEN> text{};
  return inet_ntop(address.size() == kIPv4 ? AF_INET : AF_INET6, address.data(), text.data(), text.size());
}

std::string print_endpoint(ByteView address, std::uint16_t port) {
  const std::string number = std::to_string(port);
  return address.size() == kIPv6 ? "[" + print_address(address) + "]:" + number : print_address(address) + ":" + number;
}

std::string print_protocol(std::uint16_t protocol) {
  if (protocol == IPPROTO_UDP) return "udp";
  if (protocol == IPPROTO_SCTP) return "sctp";
  if (protocol == IPPROTO_TCP) return "tcp";
  return "protocol " + std::to_string(protocol);
}

}  // namespace pointsman::netlink
