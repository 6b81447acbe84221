#pragma once

#include <cstdint>
#include <optional>

#include "netlink/byte_order.h"
#include "netlink/result.h"

namespace pointsman::netlink {

/// One received netlink message.
struct Message {
  std::uint16_t type = 0;
  std::uint16_t flags = 0;
  std::uint32_t sequence = 0;
  /// What follows nlmsghdr.
  ByteView payload;

  /// nfgenmsg's family; nothing when the payload is too short to hold one.
  std::optional<std::uint8_t> family() const;
  /// nfgenmsg's res_id, host order. nf_tables puts the low half of its generation there.
  std::optional<std::uint16_t> resource() const;
  /// The attributes after nfgenmsg; empty when there is no room for one.
  ByteView attributes() const;
};

/// Walks the messages of one datagram, trusting no length.
class MessageReader {
 public:
  explicit MessageReader(ByteView datagram) : rest_(datagram) {}

  std::optional<Message> next();
  bool malformed() const { return malformed_; }

 private:
  ByteView rest_;
  bool malformed_ = false;
};

/// The content of an NLMSG_ERROR message: success (an ack), or the kernel's error with what its extended ack adds.
struct Acknowledgement {
  std::uint32_t sequence = 0;
  /// Nothing on success.
  std::optional<Error> error;
  /// What followed the header of the request, where the kernel echoes it: not with capped acks, which the subsystems that answer themselves do not know.
  ByteView request;
};

/// Parses an NLMSG_ERROR message; a decode error when it is too short for its own lengths.
Result<Acknowledgement> parse_acknowledgement(const Message& message);

}  // namespace pointsman::netlink
