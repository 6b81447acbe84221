#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "netlink/answer.h"
#include "netlink/result.h"
#include "nftables/object.h"

namespace pointsman::nftables {

/// An object of a listing and the table it is in.
template <typename Object>
struct Listed {
  std::string table;
  Object object;
};

/// A `ct timeout` with the seconds of its states, or `counter`.
struct ObjectListing {
  std::string name;
  std::string declaration;
};

/// One element as the kernel lists it. What it views is the message: a listing has hundreds of thousands.
struct ListedElement {
  ByteView key;
  std::optional<ByteView> key_end;
  std::optional<ByteView> data;
  std::optional<Verdict> verdict;
  std::optional<std::string> comment;
  /// The packets of its counter.
  std::optional<std::uint64_t> packets;
  /// Sets of plain intervals list the end of each, exclusive, as an element of its own.
  bool interval_end = false;
  /// Matches what no other element does; has no key.
  bool catch_all = false;
};

/// The readers take NFT_MSG_NEW* messages and answer a decode error for what is not well formed.
netlink::Result<Listed<Chain>> read_chain(const netlink::Message& message);
netlink::Result<Listed<Rule>> read_rule(const netlink::Message& message);
netlink::Result<Listed<Set>> read_set(const netlink::Message& message);
/// Nothing for an object of another kind than `ct timeout` and `counter`.
netlink::Result<std::optional<Listed<ObjectListing>>> read_object(const netlink::Message& message);

/// Gives the elements one by one, those before a malformed one too; what `take` refuses ends it.
netlink::Status read_elements(const netlink::Message& message,
                              const std::function<netlink::Status(ListedElement&&)>& take);

}  // namespace pointsman::nftables
