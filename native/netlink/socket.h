#pragma once

#include <linux/netlink.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "netlink/answer.h"
#include "netlink/byte_order.h"
#include "netlink/result.h"

namespace pointsman::netlink {

/// A netlink socket. One exchange at a time; not for use by two threads at once. System calls interrupted by a signal are
/// repeated.
class Socket {
 public:
  /// Extended acks and capped acks are switched on. `port` is the socket's address, 0 for one of the kernel's choice; EADDRINUSE when it is taken.
  static Result<Socket> open(int protocol = NETLINK_NETFILTER, std::uint32_t port = 0);

  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();

  /// Makes room for a datagram of `bytes`, with SO_SNDBUFFORCE where allowed and SO_SNDBUF elsewhere. Answers the largest datagram the
  /// socket takes now.
  std::size_t reserve_send(std::size_t bytes);
  /// The same for what may wait to be received.
  void reserve_receive(std::size_t bytes);

  /// Sends one datagram of any number of messages.
  Status send(ByteView datagram);

  /// Receives one datagram; it stays valid until the next call. `wait` false: an error with EAGAIN when nothing is queued.
  Result<ByteView> receive(bool wait);

  /// Receives what is sent to a multicast group from now on, or no longer.
  Status join(int group);
  Status leave(int group);
  /// Discards in the kernel, from now on, every datagram whose first message answers a port with these bits: what is sent to a group on
  /// behalf of a request names the port that asked.
  Status ignore_ports(std::uint32_t bits, std::uint32_t mask);
  /// For poll(2).
  int descriptor() const { return descriptor_; }

  /// Sends a request with NLM_F_DUMP and gives `on_message` every answer, until NLMSG_DONE. `on_message` returns success to go on. When
  /// the kernel marks the dump interrupted (NLM_F_DUMP_INTR), the error is EINTR after everything was received: call again.
  Status dump(ByteView request, const std::function<Status(const Message&)>& on_message);

  /// Repeats `dump` while it is interrupted, `kMaxRestarts` times at most; `restart` runs before every attempt and clears what the one
  /// before left.
  Status dump_consistent(ByteView request, const std::function<void()>& restart,
                         const std::function<Status(const Message&)>& on_message);

  /// Sends one request with NLM_F_ACK, gives `on_message` what the kernel answers before its ack, and answers the kernel's verdict.
  Status request(ByteView message, const std::function<Status(const Message&)>& on_message);

  /// Sends messages that each carry NLM_F_ACK, with consecutive sequence numbers from `first_sequence`, and gives `on_answer` the kernel's answer
  /// to each. Keep `count` to some hundred, or the receive buffer fills.
  Status request_each(ByteView messages, std::uint32_t first_sequence, std::size_t count,
                      const std::function<void(const Acknowledgement&)>& on_answer);

  static constexpr int kMaxRestarts = 5;

 private:
  explicit Socket(int descriptor);
  void close();

  int descriptor_ = -1;
  Bytes buffer_;
};

}  // namespace pointsman::netlink
