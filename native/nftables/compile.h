#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "netlink/result.h"
#include "nftables/object.h"
#include "nftables/value.h"

namespace pointsman::nftables {

/// Why commands were refused: the path of the offending value and what was expected there.
struct CompileError {
  std::string message;
};

/// Finds a set declared earlier in the same transaction; null when there is none.
using SetLookup = std::function<const Set*(std::string_view name)>;

/// Compiles an array of commands in the libnftables JSON schema, all of `table`; complaints name paths below `commands`. `declared` yields sets of earlier operations: a `dnat` to a map uses
/// the map's declaration to distinguish addresses from addresses with ports, and takes a map declared elsewhere for one with ports.
netlink::Result<std::vector<Command>, CompileError> compile_commands(Family family, std::string_view table,
                                                                     const json::Value& commands, const SetLookup& declared);

}  // namespace pointsman::nftables
