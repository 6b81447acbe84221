#pragma once

#include <cstdint>
#include <string>

#include "netlink/byte_order.h"

namespace pointsman::netlink {

// How addresses read in messages and rules.

/// An address of 4 or 16 bytes.
std::string print_address(ByteView address);
/// `10.0.0.1:80` or `[fd00::1]:80`.
std::string print_endpoint(ByteView address, std::uint16_t port);
/// `tcp`, `udp`, `sctp`, or `protocol 47`.
std::string print_protocol(std::uint16_t protocol);

}  // namespace pointsman::netlink
