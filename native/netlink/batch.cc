#include "netlink/batch.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <cerrno>

namespace pointsman::netlink {

namespace {
// Each refused message queues an answer of its own; room for a few thousand.
constexpr std::size_t kAnswers = 4 * 1024 * 1024;
}  // namespace

Batch::Batch(std::uint8_t subsystem) : subsystem_(subsystem) {
  writer_.begin_message(NFNL_MSG_BATCH_BEGIN, NLM_F_REQUEST, 0, AF_UNSPEC, subsystem_);
  writer_.end_message();
}

std::uint32_t Batch::begin(std::uint8_t message, std::uint16_t flags, std::uint8_t family) {
  const auto type = static_cast<std::uint16_t>(subsystem_ << 8 | message);
  writer_.begin_message(type, static_cast<std::uint16_t>(NLM_F_REQUEST | flags), messages_ + 1, family);
  return messages_++;
}

void Batch::finish() {
  // An ack of BATCH_BEGIN or _END is a feature of newer kernels; one of the last message works everywhere.
  if (messages_ > 0) writer_.add_flags(writer_.message_start(), NLM_F_ACK);
  writer_.begin_message(NFNL_MSG_BATCH_END, NLM_F_REQUEST, 0, AF_UNSPEC, subsystem_);
  writer_.end_message();
}

Status read_verdict(const std::function<Result<ByteView>()>& receive, std::uint32_t messages) {
  std::optional<Error> refused;
  bool overrun = false;
  bool acknowledged = false;
  for (;;) {
    auto datagram = receive();
    if (!datagram.ok()) {
      if (datagram.error().code == EAGAIN) break;
      if (datagram.error().code != ENOBUFS) return datagram.error();
      overrun = true;
      continue;
    }
    MessageReader reader(datagram.value());
    while (const auto message = reader.next()) {
      if (message->type != NLMSG_ERROR) continue;
      auto answer = parse_acknowledgement(*message);
      if (!answer.ok()) return answer.error();
      if (answer.value().error && !refused) refused = std::move(answer.value().error);
      if (answer.value().sequence == messages) acknowledged = true;
    }
    if (reader.malformed()) return decode_error("the answer to a batch is malformed");
  }
  // The kernel's list of errors comes in the order of the messages; one is enough for it to have changed nothing.
  if (refused) return *refused;
  if (overrun) return system_error(ENOBUFS, "the answer to a batch was lost; its outcome is unknown");
  if (!acknowledged) return decode_error("the kernel did not answer a batch");
  return Done{};
}

Status await_batches(Socket& socket, std::uint8_t subsystem) {
  Batch empty(subsystem);
  empty.finish();
  // The kernel answers a batch without messages only when it refuses it, and has worked through it when this returns.
  if (auto sent = socket.send(empty.bytes()); !sent.ok()) return sent;
  for (;;) {
    auto datagram = socket.receive(false);
    if (!datagram.ok()) return datagram.error().code == EAGAIN ? Status(Done{}) : Status(datagram.error());
    MessageReader reader(datagram.value());
    while (const auto message = reader.next()) {
      if (message->type != NLMSG_ERROR) continue;
      auto answer = parse_acknowledgement(*message);
      if (!answer.ok()) return answer.error();
      if (answer.value().error) return *answer.value().error;
    }
  }
}

Status send_batch(Socket& socket, ByteView batch, std::uint32_t messages) {
  if (messages == 0) return Done{};
  socket.reserve_receive(kAnswers);
  if (auto sent = socket.send(batch); !sent.ok()) return sent;
  // The kernel works through a batch within sendmsg: all its answers are queued by now.
  return read_verdict([&socket] { return socket.receive(false); }, messages);
}

}  // namespace pointsman::netlink
