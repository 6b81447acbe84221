#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "addon/argument.h"
#include "iptables/operation.h"

namespace pointsman::addon {

/// The maximum of session affinity, as the API admits it.
constexpr std::uint32_t kMaxSeconds = 86'400;

/// `IPv4` or `IPv6`.
iptables::Family iptables_family_argument(const Argument& at);
/// `legacy` or `nft`.
iptables::Flavor iptables_flavor_argument(const Argument& at);
/// `filter`, `nat`, `mangle` or `raw`.
iptables::Table iptables_table_argument(const Argument& at);
/// The name of a list of `recent`.
std::string iptables_list_argument(const Argument& at);
/// Copies an IptablesTransaction; check the misuse before using it. Nothing in it can reach beyond its line of the stream.
iptables::Transaction iptables_transaction_argument(const Argument& at);

}  // namespace pointsman::addon
