#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "netlink/socket.h"

namespace pointsman::accounting {

/// Requests to make an accounting object (nfnetlink_acct), and for one by its name.
netlink::Bytes encode_new(std::uint32_t sequence, const std::string& name);
netlink::Bytes encode_get(std::uint32_t sequence, const std::string& name);
/// Packets counted, in an answer to the latter.
netlink::Result<std::uint64_t> decode_packets(const netlink::Message& message);

/// Makes an object unless it is there, which keeps its count; false if it was. A kernel without accounting answers EINVAL.
netlink::Result<bool> create_object(const std::string& name);
/// Nothing: there is no such object.
netlink::Result<std::optional<std::uint64_t>> packets_of(const std::string& name);

}  // namespace pointsman::accounting
