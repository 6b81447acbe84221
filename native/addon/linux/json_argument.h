#pragma once

#include "addon/argument.h"
#include "nftables/value.h"

namespace pointsman::addon {

/// A copy of a value made of plain objects, arrays, strings, integers, booleans and nulls; a member that is undefined counts as absent. Complains about
/// anything else, and about nesting deeper than `nftables::json::kMaxDepth`.
nftables::json::Value json_argument(const Argument& at);

}  // namespace pointsman::addon
