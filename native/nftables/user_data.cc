#include "nftables/user_data.h"

#include <linux/netfilter/nf_tables.h>

#include <algorithm>

namespace pointsman::nftables {

namespace {

// Tables, chains, rules and elements number their comment 0; sets have five other records before it.
constexpr std::uint8_t kComment = 0;
constexpr std::uint8_t kSetKeyByteOrder = 0;
constexpr std::uint8_t kSetContentByteOrder = 1;
constexpr std::uint8_t kSetKeyTypeof = 3;
constexpr std::uint8_t kSetContentTypeof = 4;
constexpr std::uint8_t kSetContentInterval = 6;
constexpr std::uint8_t kSetComment = 7;

void put_text(Bytes& to, std::uint8_t type, const std::string& text) {
  to.push_back(type);
  to.push_back(static_cast<std::uint8_t>(text.size() + 1));
  to.insert(to.end(), text.begin(), text.end());
  to.push_back(0);
}

void put_number(Bytes& to, std::uint8_t type, std::uint32_t number) {
  to.push_back(type);
  to.push_back(sizeof number);
  to.resize(to.size() + sizeof number);
  netlink::store_host32(to.data() + to.size() - sizeof number, number);
}

void put_nested(Bytes& to, std::uint8_t type, const Bytes& content) {
  to.push_back(type);
  to.push_back(static_cast<std::uint8_t>(content.size()));
  to.insert(to.end(), content.begin(), content.end());
}

/// nft's numbers of kinds of expressions, protocols and fields, as nft 1.0.6 and 1.1.3 store them.
enum : std::uint32_t {
  kNftPayload = 7,
  kNftMeta = 9,
  kNftConcat = 13,
  kNftAnyTransport = 11,
  kNftIp = 12,
  kNftIp6 = 13,
  kNftIpDaddr = 12,
  kNftIp6Daddr = 9,
  kNftDport = 2,
};

Bytes expression_record(std::uint32_t kind, const Bytes& content) {
  Bytes record;
  put_number(record, 0, kind);
  put_nested(record, 1, content);
  return record;
}

Bytes meta_record(std::uint32_t key) {
  Bytes content;
  put_number(content, 0, key);
  return expression_record(kNftMeta, content);
}

Bytes payload_record(std::uint32_t protocol, std::uint32_t field) {
  Bytes content;
  put_number(content, 0, protocol);
  put_number(content, 1, field);
  return expression_record(kNftPayload, content);
}

/// An expression of the type; empty for types that are in no key with an integer.
Bytes typical_expression(const Datatype& type) {
  switch (type.type) {
    case TypeName::kInteger:
      return meta_record(NFT_META_CPU);
    case TypeName::kInetProtocol:
      return meta_record(NFT_META_L4PROTO);
    case TypeName::kIpv4Address:
      return payload_record(kNftIp, kNftIpDaddr);
    case TypeName::kIpv6Address:
      return payload_record(kNftIp6, kNftIp6Daddr);
    case TypeName::kInetService:
      return payload_record(kNftAnyTransport, kNftDport);
    default:
      return {};
  }
}

void put_typeof(Bytes& to, std::uint8_t record, const std::vector<const Datatype*>& types) {
  Bytes parts;
  for (std::uint8_t index = 0; index < types.size(); ++index) put_nested(parts, index, typical_expression(*types[index]));
  put_nested(to, record, expression_record(kNftConcat, parts));
}

/// nft prints `type integer` and does not read it. It reads `typeof` and an expression, of which it looks only at the type here: the number of a
/// processor is an integer of 32 bits in host order. (With `numgen` in its place, as nft 1.1 declares such a map, `nft -j list ruleset` of 1.0.6 crashes.)
void put_types_of_integers(Bytes& to, const Set& set) {
  const auto key = components_of(set.key_type);
  const bool has_integer = key && std::ranges::any_of(*key, [](const Datatype* type) { return type->type == TypeName::kInteger; });
  if (!has_integer || key->size() < 2) return;
  put_typeof(to, kSetKeyTypeof, *key);
  const auto content = components_of(set.data_type);
  if (set.is_map() && !set.is_verdict_map() && content && content->size() > 1) put_typeof(to, kSetContentTypeof, *content);
}

}  // namespace

Bytes comment_user_data(const std::optional<std::string>& comment) {
  Bytes bytes;
  if (comment) put_text(bytes, kComment, *comment);
  return bytes;
}

Bytes set_user_data(const Set& set) {
  Bytes bytes;
  put_number(bytes, kSetKeyByteOrder, static_cast<std::uint32_t>(set.key_order));
  if (set.is_map()) put_number(bytes, kSetContentByteOrder, static_cast<std::uint32_t>(set.data_order));
  put_types_of_integers(bytes, set);
  if (set.is_map()) put_number(bytes, kSetContentInterval, 0);
  if (set.comment) put_text(bytes, kSetComment, *set.comment);
  return bytes;
}

std::optional<std::string> read_comment(ByteView user_data) {
  while (user_data.size() >= 2) {
    const std::uint8_t type = user_data[0];
    const std::size_t length = user_data[1];
    user_data = user_data.subspan(2);
    if (length > user_data.size()) return std::nullopt;
    if (type == kComment && length > 0) {
      return std::string(reinterpret_cast<const char*>(user_data.data()), length - 1);
    }
    user_data = user_data.subspan(length);
  }
  return std::nullopt;
}

}  // namespace pointsman::nftables
