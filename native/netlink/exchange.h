#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "netlink/message_writer.h"
#include "netlink/socket.h"

namespace pointsman::netlink {

/// What the kernel refused of a list of operations that do not depend on each other.
struct Refusal {
  /// The index of the operation.
  std::uint32_t index = 0;
  /// The refused element, where the operation consists of several.
  std::optional<std::uint32_t> element;
  /// In words.
  std::string object;
  Error error;
};

/// What became of such a list.
struct Applied {
  std::vector<Refusal> refusals;
  /// The size of the messages that were sent, their headers included.
  std::size_t bytes = 0;
};

/// Sends `count` requests that each carry NLM_F_ACK and the sequence number given to `encode`, as many in a datagram as answers fit into the receive
/// buffer. Gives `on_answer` the kernel's answer to each, in their order. After EPERM no more are sent, and the error is that.
Status exchange_each(Socket& socket, std::size_t count,
                     const std::function<void(MessageWriter& writer, std::size_t index, std::uint32_t sequence)>& encode,
                     const std::function<void(std::size_t index, const Acknowledgement& answer)>& on_answer);

/// One request of the several that an operation may consist of.
struct Step {
  std::uint32_t operation = 0;
  std::uint32_t element = 0;
};

/// `exchange_each` for every step of some operations. `count` gives the number of steps of an operation; `refused` makes the refusal, but for its error.
Result<Applied> exchange_steps(Socket& socket, std::size_t operations, const std::function<std::size_t(std::size_t operation)>& count,
                               const std::function<void(MessageWriter& writer, const Step& step, std::uint32_t sequence)>& encode,
                               const std::function<Refusal(const Step& step)>& refused);

}  // namespace pointsman::netlink
