#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netlink/batch.h"
#include "nftables/object.h"

namespace pointsman::nftables {

/// Elements of one set or map, added or deleted; columns of `count` rows.
struct Elements {
  bool deletion = false;
  std::string set;
  std::size_t count = 0;
  std::size_t key_length = 0;
  Bytes keys;
  /// The inclusive ends of concatenations with intervals.
  std::optional<Bytes> key_ends;
  std::size_t data_length = 0;
  std::optional<Bytes> data;
  /// The chain each element of a verdict map goes to.
  std::optional<std::vector<std::string>> goto_chains;
  std::optional<std::vector<std::optional<std::string>>> comments;

  ByteView key(std::size_t index) const { return ByteView(keys).subspan(index * key_length, key_length); }
};

/// Appends the message of one command. `set_id` numbers the sets of the batch, as the kernel asks for.
void write_command(netlink::Batch& batch, Family family, std::string_view table, const Command& command,
                   std::uint32_t set_id);

/// What the messages of all elements take at most, and little less: for a buffer that is made once.
std::size_t elements_size(const Elements& elements);

/// Appends one message with elements from `first` on, as many as fit a message well; answers how many.
std::size_t write_elements(netlink::Batch& batch, Family family, std::string_view table, const Elements& elements,
                           std::size_t first);

/// Which element of the message holds the byte at `offset` from the message's start; nothing when none does.
std::optional<std::size_t> element_at(ByteView message, std::uint32_t offset);

}  // namespace pointsman::nftables
