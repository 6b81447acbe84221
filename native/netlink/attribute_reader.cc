#include "netlink/attribute_reader.h"

#include <linux/netlink.h>

#include <algorithm>

namespace pointsman::netlink {

std::optional<std::uint8_t> Attribute::u8() const {
  if (payload.empty()) return std::nullopt;
  return payload[0];
}

std::optional<std::uint16_t> Attribute::be16() const {
  if (payload.size() < sizeof(std::uint16_t)) return std::nullopt;
  return load_be16(payload.data());
}

std::optional<std::uint32_t> Attribute::be32() const {
  if (payload.size() < sizeof(std::uint32_t)) return std::nullopt;
  return load_be32(payload.data());
}

std::optional<std::uint64_t> Attribute::be64() const {
  if (payload.size() < sizeof(std::uint64_t)) return std::nullopt;
  return load_be64(payload.data());
}

std::optional<std::uint16_t> Attribute::host16() const {
  if (payload.size() < sizeof(std::uint16_t)) return std::nullopt;
  return load_host16(payload.data());
}

std::optional<std::uint32_t> Attribute::host32() const {
  if (payload.size() < sizeof(std::uint32_t)) return std::nullopt;
  return load_host32(payload.data());
}

std::string_view Attribute::string() const {
  const auto end = std::find(payload.begin(), payload.end(), std::uint8_t{0});
  return {reinterpret_cast<const char*>(payload.data()), static_cast<std::size_t>(end - payload.begin())};
}

std::optional<Attribute> AttributeReader::next() {
  if (rest_.empty() || malformed_) return std::nullopt;
  if (rest_.size() < NLA_HDRLEN) {
    malformed_ = true;
    return std::nullopt;
  }
  const std::size_t length = load_host16(rest_.data());
  if (length < NLA_HDRLEN || length > rest_.size()) {
    malformed_ = true;
    return std::nullopt;
  }
  const auto type = static_cast<std::uint16_t>(load_host16(rest_.data() + 2) & NLA_TYPE_MASK);
  const Attribute attribute{type, rest_.subspan(NLA_HDRLEN, length - NLA_HDRLEN)};
  rest_ = rest_.subspan(std::min(align4(length), rest_.size()));
  return attribute;
}

}  // namespace pointsman::netlink
