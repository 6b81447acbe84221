#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "iptables/operation.h"
#include "iptables/save_parser.h"
#include "netlink/result.h"
#include "nftables/object.h"

namespace pointsman::iptables {

/// Begins the text of a rule that has more than jumps of ours have: other programs' rules may have anything.
constexpr std::string_view kForeignRule = "(not of iptables)";

/// A rule of nf_tables in iptables-save's spelling, as far as jumps to chains of ours and of kube-proxy go: comments, new connections, and where packets
/// go. Other conditions are kForeignRule.
std::string spelling_of(const nftables::Rule& rule);

/// The chains of a table as nf_tables has them, without rules.
netlink::Result<std::vector<ChainListing>> nft_chains(Family family, Table table);

/// The rules of a chain, by spelling_of.
netlink::Result<std::vector<std::string>> nft_rules(Family family, Table table, const std::string& chain);

struct FoundRule {
  Table table = Table::kFilter;
  std::string chain;
  std::uint64_t handle = 0;
};

/// For each operation another rule of its spelling, the first in the chain. ENOENT: there is none.
netlink::Result<std::vector<FoundRule>> find_nft_rules(Family family, const std::vector<RuleOperation>& operations);

/// All or none.
netlink::Status delete_nft_rules(Family family, const std::vector<FoundRule>& rules);

}  // namespace pointsman::iptables
