#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "netlink/byte_order.h"

namespace pointsman::iptables {

enum class Family { kIPv4, kIPv6 };

/// Which kernel interface the programs talk to.
enum class Flavor { kLegacy, kNft };

enum class Table { kFilter, kNat, kMangle, kRaw, kSecurity };

inline const char* name_of(Flavor flavor) { return flavor == Flavor::kLegacy ? "legacy" : "nft"; }

inline const char* name_of(Table table) {
  switch (table) {
    case Table::kFilter:
      return "filter";
    case Table::kNat:
      return "nat";
    case Table::kMangle:
      return "mangle";
    case Table::kRaw:
      return "raw";
    case Table::kSecurity:
      return "security";
  }
  return "";
}

/// The specification of a rule in iptables-save's spelling.
struct TextRule {
  std::string text;
};

struct Affinity {
  std::uint32_t seconds = 0;
  /// The `recent` list of each endpoint.
  std::vector<std::string> lists;
};

/// Rules that spread connections evenly; see IptablesEndpointRules in the contract.
struct EndpointRules {
  /// `tcp`, `udp` or `sctp`.
  std::string protocol;
  /// Per endpoint the address and two bytes of port, in network order.
  netlink::Bytes endpoints;
  std::optional<Affinity> affinity;
};

struct ChainOperation {
  Table table = Table::kFilter;
  std::string chain;
  std::vector<std::variant<TextRule, EndpointRules>> rules;
  std::optional<std::string> owner;
};

struct DeleteChainOperation {
  Table table = Table::kFilter;
  std::string chain;
};

/// At the head of the chain, at its end, or one that is there.
enum class RuleVerb : std::uint8_t { kInsert, kAppend, kDelete };

struct RuleOperation {
  RuleVerb verb = RuleVerb::kInsert;
  Table table = Table::kFilter;
  std::string chain;
  std::string text;
};

using Operation = std::variant<ChainOperation, DeleteChainOperation, RuleOperation>;

struct Transaction {
  Family family = Family::kIPv4;
  Flavor flavor = Flavor::kLegacy;
  std::vector<Operation> operations;
};

/// Bytes of a packed endpoint.
constexpr std::size_t endpoint_length(Family family) { return family == Family::kIPv4 ? 6 : 18; }

}  // namespace pointsman::iptables
