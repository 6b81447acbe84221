#pragma once

#include <map>
#include <set>

#include "nftables/listing.h"

namespace pointsman::nftables {

/// Gathers listed elements of one set into columns.
class ColumnBuilder {
 public:
  explicit ColumnBuilder(const Set& set);

  /// A decode error when an element does not fit the set's declaration.
  netlink::Status add(const ListedElement& element);
  ElementColumns take();
  /// Whether there is an element for what no key matches, which has no place in the columns.
  bool has_catch_all() const { return catch_all_; }

 private:
  void append(const ListedElement& element, const Bytes& key_end);

  const Set& set_;
  bool concatenated_intervals_;
  bool plain_intervals_;
  bool catch_all_ = false;
  ElementColumns columns_;
  /// Plain intervals: starts and exclusive ends, by key; the kernel lists them apart and in no promised order.
  std::map<Bytes, ListedElement> starts_;
  std::set<Bytes> ends_;
};

}  // namespace pointsman::nftables
