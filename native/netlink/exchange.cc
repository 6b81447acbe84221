#include "netlink/exchange.h"

#include <algorithm>
#include <cerrno>

namespace pointsman::netlink {

namespace {
/// Acks, near 1 KiB each as the kernel counts, must fit into the default receive buffer of 208 KiB.
constexpr std::size_t kMessagesPerSend = 128;
}  // namespace

Status exchange_each(Socket& socket, std::size_t count,
                     const std::function<void(MessageWriter&, std::size_t, std::uint32_t)>& encode,
                     const std::function<void(std::size_t, const Acknowledgement&)>& on_answer) {
  std::optional<Error> forbidden;
  for (std::size_t next = 0; next < count && !forbidden;) {
    // The first goes alone: to a sender without CAP_NET_ADMIN nfnetlink answers only the first message of a datagram.
    const std::size_t batch = next == 0 ? 1 : std::min(kMessagesPerSend, count - next);
    const auto first = static_cast<std::uint32_t>(next + 1);
    MessageWriter writer;
    for (std::size_t index = 0; index < batch; ++index) encode(writer, next + index, static_cast<std::uint32_t>(first + index));
    if (writer.overflow()) return system_error(EMSGSIZE, "a request is too long");
    auto exchanged = socket.request_each(writer.bytes(), first, batch, [&](const Acknowledgement& answer) {
      if (answer.error && answer.error->code == EPERM) forbidden = answer.error;
      on_answer(next + (answer.sequence - first), answer);
    });
    if (!exchanged.ok()) return exchanged;
    next += batch;
  }
  if (forbidden) return *std::move(forbidden);
  return Done{};
}

Result<Applied> exchange_steps(Socket& socket, std::size_t operations, const std::function<std::size_t(std::size_t)>& count,
                               const std::function<void(MessageWriter&, const Step&, std::uint32_t)>& encode,
                               const std::function<Refusal(const Step&)>& refused) {
  std::vector<Step> steps;
  for (std::uint32_t operation = 0; operation < operations; ++operation) {
    const std::size_t elements = count(operation);
    for (std::uint32_t element = 0; element < elements; ++element) steps.push_back({operation, element});
  }
  Applied applied;
  const auto encode_step = [&](MessageWriter& writer, std::size_t index, std::uint32_t sequence) {
    const std::size_t before = writer.size();
    encode(writer, steps[index], sequence);
    applied.bytes += writer.size() - before;
  };
  const auto exchanged = exchange_each(socket, steps.size(), encode_step, [&](std::size_t index, const Acknowledgement& answer) {
    if (!answer.error) return;
    Refusal refusal = refused(steps[index]);
    refusal.error = *answer.error;
    applied.refusals.push_back(std::move(refusal));
  });
  if (!exchanged.ok()) return exchanged.error();
  return applied;
}

}  // namespace pointsman::netlink
