#pragma once

#include <map>
#include <set>
#include <utility>

#include "nftables/listing.h"

namespace pointsman::nftables {

/// Gathers listed elements of one set into columns.
class ColumnBuilder {
 public:
  explicit ColumnBuilder(const Set& set);

  /// A decode error when an element does not fit the set's declaration.
  netlink::Status add(ListedElement element);
  ElementColumns take();
  /// Whether there is an element for what no key matches, which has no place in the columns.
  bool has_catch_all() const { return catch_all_; }

 private:
  /// An element that outlives its message, but for its key.
  struct Kept {
    ListedElement element;
    std::optional<Bytes> data;
  };

  void append(ListedElement&& element, ByteView key_end);
  void append_verdict(Verdict&& verdict);

  const Set& set_;
  bool concatenated_intervals_;
  bool plain_intervals_;
  bool catch_all_ = false;
  ElementColumns columns_;
  /// Indexes of the verdicts' texts.
  std::map<std::pair<std::int32_t, std::string>, std::uint32_t> verdicts_;
  /// Plain intervals: starts and exclusive ends, by key; the kernel lists them apart and in no promised order.
  std::map<Bytes, Kept> starts_;
  std::set<Bytes> ends_;
};

}  // namespace pointsman::nftables
