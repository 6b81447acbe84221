#include "netlink/socket.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <limits>

#include "netlink/attribute_reader.h"

namespace pointsman::netlink {

namespace {

// A dump's datagrams grow to 32 KiB with the size of the buffer offered; one message may be larger.
constexpr std::size_t kReceiveBuffer = 256 * 1024;
// Netlink answers within the system call that asks; a wait this long means the answer was lost.
constexpr timeval kReceiveTimeout{30, 0};
// netlink_sendmsg refuses datagrams longer than the send buffer less this.
constexpr std::size_t kSendOverhead = 32;

void set_buffer(int descriptor, int force, int plain, std::size_t bytes) {
  // The kernel doubles the value, and INT_MAX / 2 is the most it takes.
  const int size = static_cast<int>(std::min<std::size_t>(bytes, std::numeric_limits<int>::max() / 2));
  if (setsockopt(descriptor, SOL_SOCKET, force, &size, sizeof size) == 0) return;
  setsockopt(descriptor, SOL_SOCKET, plain, &size, sizeof size);
}

std::size_t send_buffer(int descriptor) {
  int size = 0;
  socklen_t length = sizeof size;
  if (getsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &size, &length) != 0 || size < 0) return 0;
  return static_cast<std::size_t>(size);
}

}  // namespace

Socket::Socket(int descriptor) : descriptor_(descriptor) {}

Socket::Socket(Socket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), buffer_(std::move(other.buffer_)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this == &other) return *this;
  close();
  descriptor_ = std::exchange(other.descriptor_, -1);
  buffer_ = std::move(other.buffer_);
  return *this;
}

Socket::~Socket() { close(); }

void Socket::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

Result<Socket> Socket::open(int protocol, std::uint32_t port) {
  Socket opened(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
  if (opened.descriptor_ < 0) return system_error(errno, "cannot open a netlink socket");
  const int on = 1;
  // Both exist since Linux 4.12; without them errors only lose their explanation.
  setsockopt(opened.descriptor_, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
  setsockopt(opened.descriptor_, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
  setsockopt(opened.descriptor_, SOL_SOCKET, SO_RCVTIMEO, &kReceiveTimeout, sizeof kReceiveTimeout);
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_pid = port;
  if (bind(opened.descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return system_error(errno, "cannot bind a netlink socket");
  }
  return opened;
}

std::size_t Socket::reserve_send(std::size_t bytes) {
  if (send_buffer(descriptor_) < bytes + kSendOverhead) {
    set_buffer(descriptor_, SO_SNDBUFFORCE, SO_SNDBUF, bytes / 2 + kSendOverhead);
  }
  const std::size_t size = send_buffer(descriptor_);
  return size > kSendOverhead ? size - kSendOverhead : 0;
}

void Socket::reserve_receive(std::size_t bytes) { set_buffer(descriptor_, SO_RCVBUFFORCE, SO_RCVBUF, bytes / 2); }

Status Socket::send(ByteView datagram) {
  const std::size_t room = reserve_send(datagram.size());
  if (datagram.size() > room) {
    return system_error(EMSGSIZE, "the batch has " + std::to_string(datagram.size()) + " bytes and the socket takes " +
                                      std::to_string(room));
  }
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  ssize_t sent = -1;
  do {
    sent = sendto(descriptor_, datagram.data(), datagram.size(), 0, reinterpret_cast<const sockaddr*>(&kernel),
                  sizeof kernel);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return system_error(errno, "cannot send to netlink");
  if (static_cast<std::size_t>(sent) != datagram.size()) return system_error(EIO, "netlink took part of a datagram");
  return Done{};
}

Result<ByteView> Socket::receive(bool wait) {
  if (buffer_.empty()) buffer_.resize(kReceiveBuffer);
  for (;;) {
    sockaddr_nl sender{};
    iovec vector{buffer_.data(), buffer_.size()};
    msghdr header{};
    header.msg_name = &sender;
    header.msg_namelen = sizeof sender;
    header.msg_iov = &vector;
    header.msg_iovlen = 1;
    const ssize_t length = recvmsg(descriptor_, &header, wait ? 0 : MSG_DONTWAIT);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0 && wait && errno == EAGAIN) return system_error(ETIMEDOUT, "no answer from netlink");
    if (length < 0) return system_error(errno, "cannot receive from netlink");
    // Any local process may send to our port; only port 0 is the kernel.
    if (sender.nl_pid != 0) continue;
    if ((header.msg_flags & MSG_TRUNC) != 0) return decode_error("a netlink answer is larger than the receive buffer");
    return ByteView(buffer_).first(static_cast<std::size_t>(length));
  }
}

Status Socket::join(int group) {
  if (setsockopt(descriptor_, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) == 0) return Done{};
  return system_error(errno, "cannot join a netlink group");
}

Status Socket::leave(int group) {
  if (setsockopt(descriptor_, SOL_NETLINK, NETLINK_DROP_MEMBERSHIP, &group, sizeof group) == 0) return Done{};
  return system_error(errno, "cannot leave a netlink group");
}

Status Socket::ignore_ports(std::uint32_t bits, std::uint32_t mask) {
  // Loads are big-endian, the header is in host order.
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(nlmsghdr, nlmsg_pid)),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ntohl(mask)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(bits), 1, 0),
      BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
      BPF_STMT(BPF_RET | BPF_K, 0),
  };
  const sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  if (setsockopt(descriptor_, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0) return Done{};
  return system_error(errno, "cannot filter a netlink socket");
}

Status Socket::dump(ByteView request, const std::function<Status(const Message&)>& on_message) {
  if (request.size() < sizeof(nlmsghdr)) return decode_error("the request has no header");
  const std::uint32_t sequence = load_host32(request.data() + offsetof(nlmsghdr, nlmsg_seq));
  if (auto sent = send(request); !sent.ok()) return sent;
  bool interrupted = false;
  for (;;) {
    auto datagram = receive(true);
    if (!datagram.ok()) return datagram.error();
    MessageReader reader(datagram.value());
    while (const auto message = reader.next()) {
      if (message->sequence != sequence) continue;
      interrupted = interrupted || (message->flags & NLM_F_DUMP_INTR) != 0;
      if (message->type == NLMSG_ERROR) {
        auto answer = parse_acknowledgement(*message);
        if (!answer.ok()) return answer.error();
        if (answer.value().error) return *answer.value().error;
        continue;
      }
      if (message->type == NLMSG_DONE) {
        // A dump that fails halfway reports it in the payload of NLMSG_DONE.
        if (message->payload.size() >= sizeof(std::int32_t)) {
          const auto outcome = static_cast<std::int32_t>(load_host32(message->payload.data()));
          if (outcome < 0 && outcome > -4096) return system_error(-outcome, "the dump failed");
        }
        if (interrupted) return system_error(EINTR, "the dump was interrupted by a change");
        return Done{};
      }
      if (auto taken = on_message(*message); !taken.ok()) return taken;
    }
    if (reader.malformed()) return decode_error("a netlink answer is malformed");
  }
}

Status Socket::dump_consistent(ByteView request, const std::function<void()>& restart,
                               const std::function<Status(const Message&)>& on_message) {
  for (int attempt = 0;; ++attempt) {
    restart();
    auto dumped = dump(request, on_message);
    if (dumped.ok() || dumped.error().code != EINTR || attempt == kMaxRestarts) return dumped;
  }
}

Status Socket::request(ByteView message, const std::function<Status(const Message&)>& on_message) {
  if (message.size() < sizeof(nlmsghdr)) return decode_error("the request has no header");
  const std::uint32_t sequence = load_host32(message.data() + offsetof(nlmsghdr, nlmsg_seq));
  if (auto sent = send(message); !sent.ok()) return sent;
  for (;;) {
    auto datagram = receive(true);
    if (!datagram.ok()) return datagram.error();
    MessageReader reader(datagram.value());
    while (const auto answer = reader.next()) {
      if (answer->sequence != sequence) continue;
      if (answer->type != NLMSG_ERROR) {
        if (auto taken = on_message(*answer); !taken.ok()) return taken;
        continue;
      }
      auto acknowledgement = parse_acknowledgement(*answer);
      if (!acknowledgement.ok()) return acknowledgement.error();
      if (acknowledgement.value().error) return *acknowledgement.value().error;
      return Done{};
    }
    if (reader.malformed()) return decode_error("a netlink answer is malformed");
  }
}

Status Socket::request_each(ByteView messages, std::uint32_t first_sequence, std::size_t count,
                            const std::function<void(const Acknowledgement&)>& on_answer) {
  if (auto sent = send(messages); !sent.ok()) return sent;
  std::size_t answered = 0;
  while (answered < count) {
    auto datagram = receive(true);
    if (!datagram.ok()) return datagram.error();
    MessageReader reader(datagram.value());
    while (const auto message = reader.next()) {
      if (message->type != NLMSG_ERROR || message->sequence - first_sequence >= count) continue;
      auto answer = parse_acknowledgement(*message);
      if (!answer.ok()) return answer.error();
      ++answered;
      on_answer(answer.value());
    }
    if (reader.malformed()) return decode_error("a netlink answer is malformed");
  }
  return Done{};
}

}  // namespace pointsman::netlink
