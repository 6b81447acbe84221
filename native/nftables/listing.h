#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netlink/socket.h"
#include "nftables/compile.h"
#include "nftables/decode.h"
#include "nftables/object.h"

namespace pointsman::nftables {

struct ChainListing {
  std::string name;
  std::optional<std::string> hook;
  std::vector<std::string> rules;
};

/// There are many elements and few verdicts.
struct VerdictColumn {
  /// Each once.
  std::vector<std::string> texts;
  /// For each element its text's index.
  std::vector<std::uint32_t> indexes;
};

/// Elements of a set in columns, in the kernel's order.
struct ElementColumns {
  std::size_t count = 0;
  Bytes keys;
  std::optional<Bytes> key_ends;
  std::optional<Bytes> data;
  std::optional<VerdictColumn> verdicts;
  /// Empty when no element has one.
  std::vector<std::optional<std::string>> comments;
  /// Empty when no element counts.
  std::vector<double> packets;
};

struct SetListing {
  std::string name;
  std::string declaration;
  std::uint32_t key_length = 0;
  std::uint32_t data_length = 0;
  std::optional<ElementColumns> elements;
};

/// Sorted by name.
struct TableListing {
  std::vector<ChainListing> chains;
  std::vector<SetListing> sets;
  std::vector<ObjectListing> objects;
};

/// A chain that the kernel calls, of any table.
struct BaseChain {
  Family family = Family::kIp;
  std::string table;
  std::string chain;
  /// As in ChainListing.
  std::string hook;
};

/// The base chains of the families ip, ip6, inet and netdev, without those of tables whose name is `but`.
netlink::Result<std::vector<BaseChain>> list_base_chains(netlink::Socket& socket, std::string_view but);

/// The table as the kernel has it; nothing when there is none. `elements`: the sets whose elements are wanted, all when absent. A change
/// that others make to it meanwhile starts the listing over, a few times; what the owner of `own_ports` (see Watch) makes does not. Fails with E2BIG
/// when there are more rules than `most_rules`; the socket cannot be used any more then.
netlink::Result<std::optional<TableListing>> list_table(netlink::Socket& socket, std::uint32_t own_ports, Family family,
                                                        std::string_view table,
                                                        const std::optional<std::vector<std::string>>& elements,
                                                        std::size_t most_rules = SIZE_MAX);

/// Elements of some sets of the table and nothing else of it; sets that are not there are left out. What is added or deleted meanwhile may hide
/// others, as always when the kernel lists what changes.
netlink::Result<std::vector<SetListing>> list_elements(netlink::Socket& socket, Family family, std::string_view table,
                                                       const std::vector<std::string>& sets);

/// The netlink port of the socket that owns a table; nothing when it has no owner, or cannot be read.
std::optional<std::uint32_t> table_owner(netlink::Socket& socket, Family family, std::string_view table);

/// A number that grows by one with every change of any table in the network namespace, by any process.
netlink::Result<std::uint32_t> ruleset_generation(netlink::Socket& socket);

/// What `list_table` would answer if these commands were all the table had seen.
netlink::Result<TableListing, CompileError> compile_listing(Family family, std::string_view table,
                                                    const json::Value& commands);

/// A rule as listings have it; nothing when there is none of that handle.
netlink::Result<std::optional<std::string>> find_rule(netlink::Socket& socket, Family family, std::string_view table,
                                                      std::string_view chain, std::uint64_t handle);

/// The chains of a table; none when there is no such table.
netlink::Result<std::vector<Chain>> list_chains(netlink::Socket& socket, Family family, std::string_view table);

/// The rules of one chain, in order.
netlink::Result<std::vector<Rule>> list_rules(netlink::Socket& socket, Family family, std::string_view table, std::string_view chain);

/// The declaration of one set.
netlink::Result<Set> find_set(netlink::Socket& socket, Family family, std::string_view table, std::string_view name);

}  // namespace pointsman::nftables
