#include <linux/netfilter/ipset/ip_set.h>
#include <linux/netfilter/ipset/ip_set_bitmap.h>
#include <linux/netfilter/ipset/ip_set_hash.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "ipset/message.h"

namespace pointsman::ipset {

namespace {

/// What a type means by its own numbers: errno and words.
std::pair<int, const char*> specific_meaning(int code, std::optional<Type> type) {
  if (type == Type::kPort) {
    if (code == IPSET_ERR_BITMAP_RANGE) return {ERANGE, "the port is not in the set's range"};
    return {EINVAL, "refused by the set's type"};
  }
  if (code == IPSET_ERR_HASH_FULL) return {ENOSPC, "the set is full"};
  if (code == IPSET_ERR_HASH_ELEM) return {EINVAL, "the set takes no such element"};
  if (code == IPSET_ERR_INVALID_PROTO || code == IPSET_ERR_MISSING_PROTO) return {EINVAL, "the set takes no such protocol"};
  return {EINVAL, "refused by the set's type"};
}

std::pair<int, const char*> meaning(int code, std::optional<Type> type) {
  if (code >= IPSET_ERR_TYPE_SPECIFIC) return specific_meaning(code, type);
  switch (code) {
    case IPSET_ERR_FIND_TYPE:
      return {EOPNOTSUPP, "the kernel has no such type of sets"};
    case IPSET_ERR_MAX_SETS:
      return {ENOSPC, "the kernel holds no more sets"};
    case IPSET_ERR_BUSY:
    case IPSET_ERR_REFERENCED:
      return {EBUSY, "the set is in use"};
    case IPSET_ERR_TYPE_MISMATCH:
      return {EEXIST, "there is a set of that name and another type"};
    case IPSET_ERR_EXIST:
      return {EEXIST, "the element is there, or is not"};
    case IPSET_ERR_INVALID_CIDR:
      return {EINVAL, "the set takes no prefix of that length"};
    case IPSET_ERR_COMMENT:
      return {EINVAL, "the set takes no comments"};
    case IPSET_ERR_INVALID_FAMILY:
    case IPSET_ERR_IPADDR_IPV4:
    case IPSET_ERR_IPADDR_IPV6:
      return {EINVAL, "the set is of another family"};
    default:
      return {EINVAL, "refused by ipset"};
  }
}

}  // namespace

netlink::Error translated(netlink::Error error, std::optional<Type> type) {
  if (error.kind != netlink::ErrorKind::kSystem || error.code < IPSET_ERR_PRIVATE) return error;
  const auto [code, words] = meaning(error.code, type);
  error.code = code;
  error.message = words;
  return error;
}

}  // namespace pointsman::ipset
