#include "conntrack/challenge.h"

#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

namespace pointsman::conntrack {

namespace {

using netlink::Bytes;
using netlink::ByteView;

constexpr std::size_t kTcpHeader = 20;
constexpr std::uint8_t kTimeToLive = 64;
/// The packet is sent at once or not at all.
constexpr int kAtOnce = MSG_DONTWAIT | MSG_NOSIGNAL;

class RawSocket {
 public:
  explicit RawSocket(Family family)
      : number_(::socket(family == Family::kIPv4 ? AF_INET : AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW)) {}
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;
  ~RawSocket() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

/// The sum of RFC 1071 over big-endian words, carried on.
std::uint32_t add_words(std::uint32_t sum, ByteView bytes) {
  for (std::size_t index = 0; index + 1 < bytes.size(); index += 2) sum += netlink::load_be16(bytes.data() + index);
  return sum;
}

std::uint16_t folded(std::uint32_t sum) {
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

std::size_t network_header(Family family) { return family == Family::kIPv4 ? sizeof(iphdr) : 40; }

/// Version, length and the like; addresses are written by the caller. The kernel fills in IPv4's length, checksum and identification.
void write_network_header(Family family, Bytes& packet) {
  if (family == Family::kIPv4) {
    packet[0] = 0x45;
    packet[8] = kTimeToLive;
    packet[9] = IPPROTO_TCP;
    return;
  }
  packet[0] = 0x60;
  netlink::store_be16(packet.data() + 4, kTcpHeader);
  packet[6] = IPPROTO_TCP;
  packet[7] = kTimeToLive;
}

int send_packet(int socket, Family family, ByteView packet, ByteView destination) {
  ssize_t sent = 0;
  if (family == Family::kIPv4) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    std::memcpy(&to.sin_addr, destination.data(), sizeof to.sin_addr);
    sent = ::sendto(socket, packet.data(), packet.size(), kAtOnce, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  } else {
    sockaddr_in6 to{};
    to.sin6_family = AF_INET6;
    std::memcpy(&to.sin6_addr, destination.data(), sizeof to.sin6_addr);
    sent = ::sendto(socket, packet.data(), packet.size(), kAtOnce, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  return sent < 0 ? errno : 0;
}

}  // namespace

Bytes encode_challenge(Family family, ByteView record, std::uint32_t sequence) {
  const std::size_t length = address_length(family);
  const ByteView client = record.first(length);
  const ByteView asked = record.subspan(length, length);
  const ByteView ports = record.subspan(4 * length);
  const std::size_t header = network_header(family);
  const std::size_t addresses = header - 2 * length;
  Bytes packet(header + kTcpHeader);
  write_network_header(family, packet);
  std::ranges::copy(asked, packet.begin() + static_cast<std::ptrdiff_t>(addresses));
  std::ranges::copy(client, packet.begin() + static_cast<std::ptrdiff_t>(addresses + length));
  std::uint8_t* const tcp = packet.data() + header;
  std::ranges::copy(ports.subspan(2, 2), tcp);
  std::ranges::copy(ports.first(2), tcp + 2);
  netlink::store_be32(tcp + 4, sequence);
  tcp[12] = (kTcpHeader / 4) << 4;
  tcp[13] = TH_SYN | TH_ACK;
  // Both addresses, the protocol and the length belong to the sum (RFC 9293, section 3.1; RFC 8200, section 8.1).
  const std::uint32_t pseudo = add_words(IPPROTO_TCP + kTcpHeader, ByteView(packet).subspan(addresses, 2 * length));
  netlink::store_be16(tcp + 16, folded(add_words(pseudo, ByteView(packet).subspan(header))));
  return packet;
}

netlink::Result<Challenges> send_challenges(Family family, ByteView records) {
  const RawSocket socket(family);
  if (socket.number() < 0) return netlink::system_error(errno, "cannot open a raw socket");
  std::random_device random;
  const std::size_t length = record_length(family);
  Challenges challenges;
  for (std::size_t start = 0; start + length <= records.size(); start += length) {
    const ByteView record = records.subspan(start, length);
    const Bytes packet = encode_challenge(family, record, random());
    const int error = send_packet(socket.number(), family, packet, record.first(address_length(family)));
    if (error == 0) ++challenges.sent;
    else if (!challenges.failure) challenges.failure = netlink::system_error(error, "cannot send a challenge");
  }
  return challenges;
}

}  // namespace pointsman::conntrack
