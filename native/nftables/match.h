#pragma once

#include <optional>
#include <vector>

#include "nftables/operand.h"

namespace pointsman::nftables {

/// A port compared with a constant for equality; two neighbours become one load.
struct PortMatch {
  /// The offset of the port in the transport header.
  std::uint32_t offset = 0;
  Bytes value;
};

/// The expressions of one statement.
struct Statement {
  std::vector<Expression> expressions;
  std::optional<PortMatch> port;
};

struct Match {
  Statement statement;
  /// The transport protocol the rule has matched from here on.
  std::optional<std::uint8_t> transport;
};

/// Compiles `left op right` for a right side that is a constant, a prefix or a list of bits.
Match compile_match(const Operand& left, const Cursor& op, const Cursor& right);

/// Compares the register at `slot`; `op` is NFT_CMP_*.
Expression comparison(std::size_t slot, std::uint32_t op, Bytes value);

/// As nft does: equality with a source and a destination port become one comparison, at the place of the source port's.
void merge_ports(std::vector<Statement>& statements);

}  // namespace pointsman::nftables
