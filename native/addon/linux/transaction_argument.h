#pragma once

#include "addon/argument.h"
#include "nftables/transaction.h"

namespace pointsman::addon {

/// `ip` or `ip6`.
nftables::Family family_argument(const Argument& at);
/// The name of a table, chain, set or map.
std::string name_argument(const Argument& at);
/// Copies an NftTransaction; check the misuse before using it.
nftables::Transaction transaction_argument(const Argument& at);

}  // namespace pointsman::addon
