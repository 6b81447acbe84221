#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pointsman::nftables {

/// A state of a protocol's flows for which conntrack has a timeout: nft's word, and the attribute of nfnetlink_cttimeout.
struct TimeoutState {
  std::string_view name;
  std::uint16_t attribute;
};

/// A protocol whose flows may have timeouts of their own.
struct TimeoutProtocol {
  std::string_view name;
  /// IPPROTO_*
  std::uint8_t number;
  /// In the order of their attributes, which count from 1.
  std::span<const TimeoutState> states;
};

const TimeoutProtocol* timeout_protocol(std::string_view name);
const TimeoutProtocol* timeout_protocol(std::uint8_t number);

inline constexpr std::size_t kMostTimeoutStates = 11;

/// A `ct timeout` object: how long conntrack keeps the flows that a rule gives it to.
struct Timeout {
  std::string name;
  /// IPPROTO_*; 0 where the object is only named.
  std::uint8_t protocol = 0;
  /// Seconds of each state of the protocol; nothing for a state that is not known to have one.
  std::array<std::optional<std::uint32_t>, kMostTimeoutStates> seconds;
};

/// `ct timeout tcp syn_sent 1 established 86400`; a protocol without a name here is a number.
std::string timeout_text(const Timeout& timeout);

}  // namespace pointsman::nftables
