#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "iptables/child_process.h"
#include "iptables/operation.h"
#include "iptables/save_parser.h"
#include "netlink/result.h"

namespace pointsman::iptables {

/// Runs iptables-restore with this input.
using RunRestore = std::function<Exit(std::string_view input, const std::function<void(std::string_view)>& output)>;

/// Whether a program ended because it does not know a rule: OTHER_PROBLEM and VERSION_PROBLEM of iptables.
bool knows_no_rule(const Exit& exit);

/// Chains of one table as `-S CHAIN` prints them: iptables-save lists a table whole or not at all, and fails over one rule of another program that it does
/// not know.
///
/// iptables-restore takes these commands too, so a run lists thousands of chains. It ends at the first that it cannot list; another one lists what follows, a
/// few times.
/// @param names in order: those for which it matters first.
/// @param text_of as in SaveParser.
/// @returns the chains that could be listed; how a run ended that failed for another reason.
netlink::Result<std::vector<ChainListing>, Exit> list_by_chain(const RunRestore& run, Table table, std::vector<std::string> names, const std::vector<std::string>& text_of);

/// The rules of one chain, one `-S CHAIN NUMBER` each; what cannot be listed is `unlisted`. The nft flavour refuses a chain with expressions that it does not
/// know at every rule.
netlink::Result<std::vector<std::string>, Exit> list_by_rule(const RunRestore& run, Table table, const std::string& chain, std::string_view unlisted);

}  // namespace pointsman::iptables
