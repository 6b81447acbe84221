#include "netlink/answer.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include <algorithm>
#include <limits>

#include "netlink/attribute_reader.h"

namespace pointsman::netlink {

std::optional<std::uint8_t> Message::family() const {
  if (payload.size() < sizeof(nfgenmsg)) return std::nullopt;
  return payload[offsetof(nfgenmsg, nfgen_family)];
}

std::optional<std::uint16_t> Message::resource() const {
  if (payload.size() < sizeof(nfgenmsg)) return std::nullopt;
  return load_be16(payload.data() + offsetof(nfgenmsg, res_id));
}

ByteView Message::attributes() const {
  if (payload.size() < sizeof(nfgenmsg)) return {};
  return payload.subspan(sizeof(nfgenmsg));
}

std::optional<Message> MessageReader::next() {
  if (rest_.empty() || malformed_) return std::nullopt;
  if (rest_.size() < NLMSG_HDRLEN) {
    malformed_ = true;
    return std::nullopt;
  }
  const std::size_t length = load_host32(rest_.data() + offsetof(nlmsghdr, nlmsg_len));
  if (length < NLMSG_HDRLEN || length > rest_.size()) {
    malformed_ = true;
    return std::nullopt;
  }
  Message message;
  message.type = load_host16(rest_.data() + offsetof(nlmsghdr, nlmsg_type));
  message.flags = load_host16(rest_.data() + offsetof(nlmsghdr, nlmsg_flags));
  message.sequence = load_host32(rest_.data() + offsetof(nlmsghdr, nlmsg_seq));
  message.payload = rest_.subspan(NLMSG_HDRLEN, length - NLMSG_HDRLEN);
  rest_ = rest_.subspan(std::min(align4(length), rest_.size()));
  return message;
}

Result<Acknowledgement> parse_acknowledgement(const Message& message) {
  constexpr std::size_t kFixed = sizeof(std::int32_t) + sizeof(nlmsghdr);
  if (message.payload.size() < kFixed) return decode_error("acknowledgement is truncated");
  const auto negative = static_cast<std::int32_t>(load_host32(message.payload.data()));
  Acknowledgement acknowledgement{message.sequence, {}, {}};
  if (negative == 0) return acknowledgement;
  if (negative > 0 || negative == std::numeric_limits<std::int32_t>::min()) {
    return decode_error("acknowledgement carries an errno out of range");
  }
  Error error = system_error(-negative, "refused by the kernel");
  error.sequence = message.sequence;
  if ((message.flags & NLM_F_ACK_TLVS) != 0) {
    // With NETLINK_CAP_ACK only the request's header is echoed; without it the whole request precedes the attributes.
    std::size_t echoed = sizeof(nlmsghdr);
    if ((message.flags & NLM_F_CAPPED) == 0) {
      echoed = align4(load_host32(message.payload.data() + sizeof(std::int32_t) + offsetof(nlmsghdr, nlmsg_len)));
    }
    const std::size_t start = sizeof(std::int32_t) + echoed;
    if (start > message.payload.size()) return decode_error("extended acknowledgement is truncated");
    AttributeReader reader(message.payload.subspan(start));
    while (const auto attribute = reader.next()) {
      if (attribute->type == NLMSGERR_ATTR_MSG) error.kernel_message = std::string(attribute->string());
      if (attribute->type == NLMSGERR_ATTR_OFFS) error.offset = attribute->host32();
    }
    if (reader.malformed()) return decode_error("extended acknowledgement is malformed");
  }
  acknowledgement.error = std::move(error);
  if ((message.flags & NLM_F_CAPPED) == 0) {
    const std::size_t echoed = load_host32(message.payload.data() + sizeof(std::int32_t) + offsetof(nlmsghdr, nlmsg_len));
    const ByteView request = message.payload.subspan(kFixed);
    if (echoed >= sizeof(nlmsghdr)) acknowledgement.request = request.first(std::min(echoed - sizeof(nlmsghdr), request.size()));
  }
  return acknowledgement;
}

}  // namespace pointsman::netlink
