#pragma once

#include <cstddef>

#include "nftables/compile.h"
#include "nftables/cursor.h"
#include "nftables/object.h"

namespace pointsman::nftables {

/// The kernel's NFT_NAME_MAXLEN without its NUL.
inline constexpr std::size_t kMaxName = 255;

/// Compiles a rule's `expr` list to the expressions nft makes of it. Complaints go to the cursor's diagnosis.
std::vector<Expression> compile_expressions(const Cursor& statements, Family family, const SetLookup& sets);

}  // namespace pointsman::nftables
