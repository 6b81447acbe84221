#include "nftables/element_columns.h"

#include <linux/netfilter/nf_tables.h>

#include <algorithm>

namespace pointsman::nftables {

namespace {

// The largest key below `key`, both in network order.
Bytes before(Bytes key) {
  for (std::size_t index = key.size(); index-- > 0;) {
    if (key[index]-- != 0) break;
  }
  return key;
}

}  // namespace

ColumnBuilder::ColumnBuilder(const Set& set)
    : set_(set),
      concatenated_intervals_((set.flags & NFT_SET_INTERVAL) != 0 && !set.field_lengths.empty()),
      plain_intervals_((set.flags & NFT_SET_INTERVAL) != 0 && set.field_lengths.empty()) {
  if (concatenated_intervals_ || plain_intervals_) columns_.key_ends.emplace();
  if (set.is_verdict_map()) columns_.verdicts.emplace();
  if (set.is_map() && !set.is_verdict_map()) columns_.data.emplace();
}

netlink::Status ColumnBuilder::add(ListedElement element) {
  if (element.catch_all) {
    catch_all_ = true;
    return netlink::Done{};
  }
  if (element.key.size() != set_.key_length) return netlink::decode_error("an element's key has another length than its set's");
  if (element.interval_end) {
    ends_.emplace(element.key.begin(), element.key.end());
    return netlink::Done{};
  }
  if (element.key_end && element.key_end->size() != set_.key_length) {
    return netlink::decode_error("an element's end has another length than its set's key");
  }
  if (columns_.verdicts && !element.verdict) return netlink::decode_error("an element of a verdict map has no verdict");
  if (columns_.data && (!element.data || element.data->size() != set_.data_length)) {
    return netlink::decode_error("an element's content has another length than its map's");
  }
  const ByteView key_end = element.key_end.value_or(element.key);
  if (!plain_intervals_ || element.key_end) {
    append(std::move(element), key_end);
    return netlink::Done{};
  }
  Bytes key(element.key.begin(), element.key.end());
  std::optional<Bytes> data;
  if (element.data) data.emplace(element.data->begin(), element.data->end());
  starts_.emplace(std::move(key), Kept{std::move(element), std::move(data)});
  return netlink::Done{};
}

void ColumnBuilder::append(ListedElement&& element, ByteView key_end) {
  ++columns_.count;
  columns_.keys.insert(columns_.keys.end(), element.key.begin(), element.key.end());
  if (columns_.key_ends) columns_.key_ends->insert(columns_.key_ends->end(), key_end.begin(), key_end.end());
  if (columns_.data) columns_.data->insert(columns_.data->end(), element.data->begin(), element.data->end());
  if (columns_.verdicts) append_verdict(*std::move(element.verdict));
  if (element.comment) {
    columns_.comments.resize(columns_.count - 1);
    columns_.comments.push_back(std::move(element.comment));
  }
  if (element.packets) {
    columns_.packets.resize(columns_.count - 1);
    columns_.packets.push_back(static_cast<double>(*element.packets));
  }
}

void ColumnBuilder::append_verdict(Verdict&& verdict) {
  auto& [texts, indexes] = *columns_.verdicts;
  const auto next = static_cast<std::uint32_t>(texts.size());
  const auto [found, added] = verdicts_.try_emplace({verdict.code, std::move(verdict.chain)}, next);
  if (added) texts.push_back(verdict_text(Verdict{found->first.first, found->first.second}));
  indexes.push_back(found->second);
}

ElementColumns ColumnBuilder::take() {
  for (auto& [key, kept] : starts_) {
    kept.element.key = key;
    if (kept.data) kept.element.data = *kept.data;
    const auto end = ends_.upper_bound(key);
    append(std::move(kept.element), end == ends_.end() ? Bytes(key.size(), 0xff) : before(*end));
  }
  if (!columns_.comments.empty()) columns_.comments.resize(columns_.count);
  if (!columns_.packets.empty()) columns_.packets.resize(columns_.count);
  return std::move(columns_);
}

}  // namespace pointsman::nftables
