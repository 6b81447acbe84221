#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conntrack/flow.h"
#include "netlink/socket.h"

namespace pointsman::conntrack {

/// States of TCP, the protocol with the most.
inline constexpr std::size_t kMostPolicyStates = 11;

/// An object of nfnetlink_cttimeout: how long conntrack keeps the flows that a rule (`CT --timeout`) gives it to.
struct TimeoutPolicy {
  std::string name;
  Family family = Family::kIPv4;
  /// IPPROTO_*
  std::uint8_t protocol = 0;
  /// The seconds of each state, in the order of the protocol's attributes, which count from 1.
  std::vector<std::uint32_t> seconds;
};

/// Requests to make a policy or to give the one of this name other seconds, for all of them, and to delete one.
netlink::Bytes encode_set_policy(std::uint32_t sequence, const TimeoutPolicy& policy);
netlink::Bytes encode_list_policies(std::uint32_t sequence);
netlink::Bytes encode_delete_policy(std::uint32_t sequence, const std::string& name);
/// Nothing for a policy of another family than these two.
netlink::Result<std::optional<TimeoutPolicy>> decode_policy(const netlink::Message& message);

/// A kernel without such policies answers EINVAL. Flows that have the policy follow other seconds with their next packet.
netlink::Result<bool> set_policy(const TimeoutPolicy& policy);
netlink::Result<std::vector<TimeoutPolicy>> list_policies();
/// False: there is none. EBUSY while a rule names it.
netlink::Result<bool> delete_policy(const std::string& name);

}  // namespace pointsman::conntrack
