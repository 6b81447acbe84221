#pragma once

#include <linux/netfilter.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "nftables/datatype.h"
#include "nftables/expression.h"
#include "nftables/timeout.h"

namespace pointsman::nftables {

/// NFPROTO_IPV4 or NFPROTO_IPV6; the numbers of nfgenmsg.
/// What is ours is in `ip` and `ip6`; of others there may be `inet`, whose chains have both, and `netdev`, with those of interfaces.
enum class Family : std::uint8_t { kInet = 1, kIp = 2, kNetdev = 5, kIp6 = 10 };

inline const char* family_name(Family family) {
  if (family == Family::kInet) return "inet";
  if (family == Family::kNetdev) return "netdev";
  return family == Family::kIp ? "ip" : "ip6";
}

struct Table {
  /// NFT_TABLE_F_*
  std::uint32_t flags = 0;
  std::optional<std::string> comment;
};

/// What makes a chain a base chain. `hook` and `policy` are NF_INET_* and NF_*; `hook` may be kEgress.
struct BaseHook {
  std::string type;
  std::uint32_t hook = 0;
  std::int32_t priority = 0;
  std::uint32_t policy = 0;
  /// The interfaces of hooks of the family netdev, and of NF_INET_INGRESS; with a `*` at the end all whose names begin so.
  std::vector<std::string> devices;
};

/// NF_NETDEV_EGRESS, which has no number among NF_INET_*.
inline constexpr std::uint32_t kEgress = NF_INET_INGRESS + 1;

struct Chain {
  std::string name;
  std::optional<BaseHook> hook;
  std::optional<std::string> comment;
};

struct Rule {
  std::string chain;
  /// Names a rule to delete.
  std::optional<std::uint64_t> handle;
  std::optional<std::string> comment;
  std::vector<Expression> expressions;
};

struct Set {
  std::string name;
  /// NFT_SET_*
  std::uint32_t flags = 0;
  /// nft's type numbers; NFT_DATA_VERDICT as the data type of a verdict map.
  std::uint32_t key_type = 0;
  std::uint32_t key_length = 0;
  std::uint32_t data_type = 0;
  std::uint32_t data_length = 0;
  /// Lengths of the components, for concatenations with intervals.
  std::vector<std::uint32_t> field_lengths;
  std::uint64_t timeout_ms = 0;
  /// 0: no limit.
  std::uint32_t size = 0;
  std::optional<std::string> comment;
  ByteOrder key_order = ByteOrder::kNone;
  ByteOrder data_order = ByteOrder::kNone;
  /// A set of expressions in every element, such as counters; as received, nothing of ours has any.
  std::optional<Bytes> element_expressions;

  bool is_map() const;
  bool is_verdict_map() const;
};

/// A named counter. Rules of other proxies count with such; we only remove them.
struct Counter {
  std::string name;
};

enum class Verb { kAdd, kCreate, kInsert, kDelete, kFlush };

struct Command {
  Verb verb = Verb::kAdd;
  std::variant<Table, Chain, Set, Rule, Timeout, Counter> object;
};

/// `type filter hook input priority 0 policy accept`, or `type filter hook ingress devices eth0:eth1 priority 0 policy accept`.
std::string hook_text(const BaseHook& hook);
/// `map key ipv4_addr . inet_proto length 8 content verdict flags timeout timeout 10s size 100`; what is absent is left out.
std::string declaration_text(const Set& set);
/// Expressions in order, and the comment when there is one.
std::string rule_text(const Rule& rule);
/// `add chain services`, for messages.
std::string command_text(const Command& command);

std::optional<std::uint32_t> hook_number(std::string_view name);

}  // namespace pointsman::nftables
