#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nftables/object.h"

namespace pointsman::nftables {

/// User data of kernel objects is nft's own record: type, length, value, each length and type one byte. The types repeat the numbers of
/// libnftnl's udata.h; a listing tool that does not know a type skips it.
Bytes comment_user_data(const std::optional<std::string>& comment);

/// Byte orders of key and content, which nft needs to print numbers, and the comment.
Bytes set_user_data(const Set& set);

/// The comment of a table, chain, rule or element; nothing when there is none or the record is malformed.
std::optional<std::string> read_comment(ByteView user_data);

}  // namespace pointsman::nftables
