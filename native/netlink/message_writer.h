#pragma once

#include <cstdint>
#include <string_view>

#include "netlink/byte_order.h"

namespace pointsman::netlink {

/// Appends netlink messages to one growing buffer. Lengths are checked as nests and messages close; the first overflow sticks and is asked
/// for once, with `overflow()`.
class MessageWriter {
 public:
  /// Opens a message: nlmsghdr and nfgenmsg. `type` is the full nlmsg_type (subsystem << 8 | message), `resource` nfgenmsg's res_id in
  /// host order.
  void begin_message(std::uint16_t type, std::uint16_t flags, std::uint32_t sequence, std::uint8_t family,
                     std::uint16_t resource = 0);
  /// The same with the header of another subsystem in the place of nfgenmsg; its length is a multiple of 4.
  void begin_message(std::uint16_t type, std::uint16_t flags, std::uint32_t sequence, ByteView header);
  void end_message();

  void put_u8(std::uint16_t type, std::uint8_t value);
  void put_be16(std::uint16_t type, std::uint16_t value);
  void put_be32(std::uint16_t type, std::uint32_t value);
  void put_be64(std::uint16_t type, std::uint64_t value);
  void put_host16(std::uint16_t type, std::uint16_t value);
  void put_host32(std::uint16_t type, std::uint32_t value);
  /// NUL terminated.
  void put_string(std::uint16_t type, std::string_view value);
  void put_bytes(std::uint16_t type, ByteView value);

  /// A nest (NLA_F_NESTED) around what `body` puts.
  template <typename Body>
  void nest(std::uint16_t type, Body&& body) {
    const std::size_t start = open_nest(type);
    body();
    close_nest(start);
  }

  /// For nests whose end is decided while writing; every open is closed with the offset it returned.
  std::size_t open_nest(std::uint16_t type);
  void close_nest(std::size_t start);

  bool overflow() const { return overflow_; }
  std::size_t size() const { return buffer_.size(); }
  /// Start of the message being written.
  std::size_t message_start() const { return message_start_; }
  ByteView bytes() const { return buffer_; }
  Bytes take() { return std::move(buffer_); }
  void reserve(std::size_t bytes) { buffer_.reserve(bytes); }
  /// Sets flags of the message that starts at `start`, such as NLM_F_ACK on the last one.
  void add_flags(std::size_t start, std::uint16_t flags);

 private:
  std::uint8_t* put(std::uint16_t type, std::size_t length);

  Bytes buffer_;
  std::size_t message_start_ = 0;
  bool overflow_ = false;
};

}  // namespace pointsman::netlink
