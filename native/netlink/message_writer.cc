#include "netlink/message_writer.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include <array>
#include <limits>

namespace pointsman::netlink {

namespace {
constexpr std::size_t kMaxAttribute = std::numeric_limits<std::uint16_t>::max();
constexpr std::size_t kMaxMessage = std::numeric_limits<std::uint32_t>::max();
}  // namespace

void MessageWriter::begin_message(std::uint16_t type, std::uint16_t flags, std::uint32_t sequence, std::uint8_t family,
                                  std::uint16_t resource) {
  std::array<std::uint8_t, sizeof(nfgenmsg)> generic{};
  generic[offsetof(nfgenmsg, nfgen_family)] = family;
  generic[offsetof(nfgenmsg, version)] = NFNETLINK_V0;
  store_be16(generic.data() + offsetof(nfgenmsg, res_id), resource);
  begin_message(type, flags, sequence, generic);
}

void MessageWriter::begin_message(std::uint16_t type, std::uint16_t flags, std::uint32_t sequence, ByteView header) {
  message_start_ = buffer_.size();
  buffer_.resize(message_start_ + NLMSG_HDRLEN);
  std::uint8_t* start = buffer_.data() + message_start_;
  store_host16(start + offsetof(nlmsghdr, nlmsg_type), type);
  store_host16(start + offsetof(nlmsghdr, nlmsg_flags), flags);
  store_host32(start + offsetof(nlmsghdr, nlmsg_seq), sequence);
  buffer_.insert(buffer_.end(), header.begin(), header.end());
}

void MessageWriter::end_message() {
  const std::size_t length = buffer_.size() - message_start_;
  if (length > kMaxMessage) {
    overflow_ = true;
    return;
  }
  store_host32(buffer_.data() + message_start_ + offsetof(nlmsghdr, nlmsg_len), static_cast<std::uint32_t>(length));
}

std::uint8_t* MessageWriter::put(std::uint16_t type, std::size_t length) {
  if (NLA_HDRLEN + length > kMaxAttribute) {
    overflow_ = true;
    return nullptr;
  }
  const std::size_t start = buffer_.size();
  buffer_.resize(start + NLA_HDRLEN + align4(length));
  std::uint8_t* attribute = buffer_.data() + start;
  store_host16(attribute, static_cast<std::uint16_t>(NLA_HDRLEN + length));
  store_host16(attribute + 2, type);
  return attribute + NLA_HDRLEN;
}

void MessageWriter::put_u8(std::uint16_t type, std::uint8_t value) { *put(type, sizeof value) = value; }

void MessageWriter::put_be16(std::uint16_t type, std::uint16_t value) { store_be16(put(type, sizeof value), value); }

void MessageWriter::put_be32(std::uint16_t type, std::uint32_t value) { store_be32(put(type, sizeof value), value); }

void MessageWriter::put_be64(std::uint16_t type, std::uint64_t value) { store_be64(put(type, sizeof value), value); }

void MessageWriter::put_host16(std::uint16_t type, std::uint16_t value) { store_host16(put(type, sizeof value), value); }

void MessageWriter::put_host32(std::uint16_t type, std::uint32_t value) { store_host32(put(type, sizeof value), value); }

void MessageWriter::put_string(std::uint16_t type, std::string_view value) {
  std::uint8_t* payload = put(type, value.size() + 1);
  if (payload != nullptr && !value.empty()) std::memcpy(payload, value.data(), value.size());
}

void MessageWriter::put_bytes(std::uint16_t type, ByteView value) {
  std::uint8_t* payload = put(type, value.size());
  if (payload != nullptr && !value.empty()) std::memcpy(payload, value.data(), value.size());
}

std::size_t MessageWriter::open_nest(std::uint16_t type) {
  const std::size_t start = buffer_.size();
  put(static_cast<std::uint16_t>(type | NLA_F_NESTED), 0);
  return start;
}

void MessageWriter::close_nest(std::size_t start) {
  const std::size_t length = buffer_.size() - start;
  if (length > kMaxAttribute) {
    overflow_ = true;
    return;
  }
  store_host16(buffer_.data() + start, static_cast<std::uint16_t>(length));
}

void MessageWriter::add_flags(std::size_t start, std::uint16_t flags) {
  std::uint8_t* field = buffer_.data() + start + offsetof(nlmsghdr, nlmsg_flags);
  store_host16(field, static_cast<std::uint16_t>(load_host16(field) | flags));
}

}  // namespace pointsman::netlink
