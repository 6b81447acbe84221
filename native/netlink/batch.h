#pragma once

#include <cstdint>

#include "netlink/message_writer.h"
#include "netlink/socket.h"

namespace pointsman::netlink {

/// An nfnetlink batch: messages between NFNL_MSG_BATCH_BEGIN and _END that take effect together or not at all. Message `n` (from 0) has
/// sequence number `n + 1`; the frame itself has 0.
class Batch {
 public:
  /// `subsystem`: NFNL_SUBSYS_*.
  explicit Batch(std::uint8_t subsystem);

  /// Opens the next message; write its attributes to `writer()` and call `end()`. Answers its index.
  std::uint32_t begin(std::uint8_t message, std::uint16_t flags, std::uint8_t family);
  void end() { writer_.end_message(); }
  MessageWriter& writer() { return writer_; }

  /// Asks for an ack of the last message and closes the frame. Nothing can be added afterwards.
  void finish();

  std::uint32_t messages() const { return messages_; }
  bool overflow() const { return writer_.overflow(); }
  ByteView bytes() const { return writer_.bytes(); }
  Bytes take() { return writer_.take(); }

  static std::uint32_t index_of(std::uint32_t sequence) { return sequence - 1; }

 private:
  MessageWriter writer_;
  std::uint8_t subsystem_;
  std::uint32_t messages_ = 0;
};

/// Sends a finished batch in one datagram and reads the kernel's verdict. The error is that of the first message refused. ENOBUFS when the
/// receive buffer overran and no error was seen: the outcome is unknown.
Status send_batch(Socket& socket, ByteView batch, std::uint32_t messages);

/// Waits until a batch that the subsystem is working on, of any sender, is done and all listeners were notified of it: only one is worked on at
/// a time. Changes nothing.
Status await_batches(Socket& socket, std::uint8_t subsystem);

/// Reads the verdict out of the datagrams `receive` yields until it answers EAGAIN; the part of `send_batch` that needs no kernel.
Status read_verdict(const std::function<Result<ByteView>()>& receive, std::uint32_t messages);

}  // namespace pointsman::netlink
