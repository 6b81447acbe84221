#include "nftables/user_data.h"

namespace pointsman::nftables {

namespace {

// Tables, chains, rules and elements number their comment 0; sets have five other records before it.
constexpr std::uint8_t kComment = 0;
constexpr std::uint8_t kSetKeyByteOrder = 0;
constexpr std::uint8_t kSetContentByteOrder = 1;
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
