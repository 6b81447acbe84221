#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "netlink/attribute_reader.h"
#include "netlink/byte_order.h"
#include "netlink/message_writer.h"
#include "netlink/result.h"

namespace pointsman::nftables {

using netlink::Bytes;
using netlink::ByteView;

/// NF_* or NFT_* code, and the chain of a jump or goto.
struct Verdict {
  std::int32_t code = 0;
  std::string chain;
};

/// `accept`, `goto NAME` … in nft's words; `verdict NUMBER` for codes it has no word for.
std::string verdict_text(const Verdict& verdict);
/// NFTA_VERDICT_* attributes of `verdict`.
void write_verdict(netlink::MessageWriter& writer, const Verdict& verdict);
/// Nothing when malformed or when there is an attribute that is not known.
std::optional<Verdict> read_verdict(ByteView attributes);

struct Expression;

/// One attribute of an expression. Numbers of every width are kept alike; the expression's schema knows the width. An expression within is a list of one.
struct Field {
  std::uint16_t attribute = 0;
  std::variant<std::uint64_t, std::string, Bytes, Verdict, std::vector<Expression>> value;
};

/// An expression of a rule: its kernel name and its attributes in the order nft writes them.
struct Expression {
  std::string name;
  std::vector<Field> fields;
  /// NFTA_EXPR_DATA as received, of an expression or attribute that has no schema; the fields are then empty.
  std::optional<Bytes> unknown;

  void set(std::uint16_t attribute, std::uint64_t number);
  std::optional<std::uint64_t> number(std::uint16_t attribute) const;
};

/// Writes one NFTA_LIST_ELEM. An expression that was received and not understood is not written back.
void write_expression(netlink::MessageWriter& writer, const Expression& expression);

/// Reads the attributes of one NFTA_LIST_ELEM. An expression without a schema or with an attribute beyond it is kept as bytes; the error is
/// for what is malformed.
netlink::Result<Expression> read_expression(ByteView attributes);

/// Reads a list of NFTA_LIST_ELEM.
netlink::Result<std::vector<Expression>> read_expressions(ByteView list);

/// `[payload dreg 1 base network offset 16 len 4]`: every attribute in the schema's order, but for counters and for what equals the
/// value the kernel adds by itself. `unknown(name) 0x…` for what has no schema.
std::string expression_text(const Expression& expression);

}  // namespace pointsman::nftables
