#include "nftables/match.h"

#include <linux/netfilter/nf_tables.h>

#include <algorithm>

namespace pointsman::nftables {

namespace {

struct Operator {
  std::string_view word;
  std::uint32_t comparison;
  bool ordering;
};

constexpr Operator kOperators[] = {
    {"==", NFT_CMP_EQ, false}, {"in", NFT_CMP_EQ, false}, {"!=", NFT_CMP_NEQ, false}, {"<", NFT_CMP_LT, true},
    {"<=", NFT_CMP_LTE, true}, {">", NFT_CMP_GT, true},   {">=", NFT_CMP_GTE, true},
};

bool is_payload(const Operand& operand) { return operand.load.name == "payload"; }

Match compare(const Operand& left, std::uint32_t op, Bytes value) {
  Match match;
  emit_loads({left}, 0, match.statement.expressions);
  match.statement.expressions.push_back(comparison(0, op, std::move(value)));
  return match;
}

// Whole bytes are compared without a mask, and a header field is then loaded only that far.
Match compile_prefix(const Operand& left, std::uint32_t op, const Cursor& prefix) {
  prefix.only({"addr", "len"});
  const bool address = left.type->type == TypeName::kIpv4Address || left.type->type == TypeName::kIpv6Address;
  if (!address || left.masked()) {
    prefix.fail("only an address has a prefix");
    return {};
  }
  auto value = compile_constant(prefix.member("addr"), *left.type);
  const auto bits = static_cast<std::size_t>(prefix.member("len").need_number(0, 8 * left.length));
  if (!value || prefix.failed()) return {};
  Bytes mask(left.length);
  for (std::size_t bit = 0; bit < bits; ++bit) mask[bit / 8] |= static_cast<std::uint8_t>(0x80 >> bit % 8);
  for (std::size_t byte = 0; byte < mask.size(); ++byte) (*value)[byte] &= mask[byte];
  if (bits == 8 * left.length) return compare(left, op, *std::move(value));
  Operand shortened = left;
  if (bits % 8 == 0 && bits > 0) {
    if (is_payload(left)) shortened.load.set(NFTA_PAYLOAD_LEN, bits / 8);
    value->resize(bits / 8);
    return compare(shortened, op, *std::move(value));
  }
  shortened.mask = std::move(mask);
  shortened.toggle.assign(left.length, 0);
  return compare(shortened, op, *std::move(value));
}

Match compile_wildcard(const Operand& left, std::uint32_t op, const std::string& text, const Cursor& at) {
  const std::string prefix = text.substr(0, text.size() - 1);
  if (prefix.empty() || prefix.size() >= left.length || prefix.find('\0') != std::string::npos) {
    at.refuse("an interface name");
    return {};
  }
  return compare(left, op, Bytes(prefix.begin(), prefix.end()));
}

// The kernel compares bytes, so numbers in host order are turned first.
Match compile_ordering(const Operand& left, std::uint32_t op, Bytes value, const Cursor& at) {
  if (left.type->bitmask || left.type->type == TypeName::kInterfaceName || left.type->type == TypeName::kFibType) {
    at.fail("the left side has no order");
    return {};
  }
  Match match;
  emit_loads({left}, 0, match.statement.expressions);
  if (left.type->order == ByteOrder::kHost) {
    Expression byteorder{"byteorder", {}, {}};
    byteorder.set(NFTA_BYTEORDER_SREG, NFT_REG_1);
    byteorder.set(NFTA_BYTEORDER_DREG, NFT_REG_1);
    byteorder.set(NFTA_BYTEORDER_OP, NFT_BYTEORDER_HTON);
    byteorder.set(NFTA_BYTEORDER_LEN, left.length);
    byteorder.set(NFTA_BYTEORDER_SIZE, left.length);
    match.statement.expressions.push_back(std::move(byteorder));
    netlink::store_be32(value.data(), netlink::load_host32(value.data()));
  }
  match.statement.expressions.push_back(comparison(0, op, std::move(value)));
  return match;
}

}  // namespace

Expression comparison(std::size_t slot, std::uint32_t op, Bytes value) {
  Expression made{"cmp", {}, {}};
  made.set(NFTA_CMP_SREG, register_of(slot));
  made.set(NFTA_CMP_OP, op);
  made.fields.push_back(Field{NFTA_CMP_DATA, std::move(value)});
  return made;
}

Match compile_match(const Operand& left, const Cursor& op, const Cursor& right) {
  const std::string word = op.need_string();
  const auto* found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                   [&](const Operator& each) { return each.word == word; });
  if (found == std::end(kOperators)) {
    op.refuse("==, !=, <, <=, >, >= or in");
    return {};
  }
  const std::uint32_t comparison_op = found->comparison;
  if (const Cursor prefix = right.member("prefix"); prefix.present() && !found->ordering) {
    right.only({"prefix"});
    return compile_prefix(left, comparison_op, prefix);
  }
  if (left.type->type == TypeName::kInterfaceName && right.string() != nullptr && right.string()->ends_with('*') &&
      !found->ordering) {
    return compile_wildcard(left, comparison_op, *right.string(), right);
  }
  auto value = compile_constant(right, *left.type);
  if (!value) return {};
  if (found->ordering) return compile_ordering(left, comparison_op, *std::move(value), op);
  if (word == "in" && left.type->bitmask && !left.masked()) {
    Operand any = left;
    any.mask = *value;
    any.toggle.assign(left.length, 0);
    return compare(any, NFT_CMP_NEQ, Bytes(left.length));
  }
  Match match = compare(left, comparison_op, *value);
  const bool equality = comparison_op == NFT_CMP_EQ && !left.masked();
  if (equality && left.type->type == TypeName::kInetProtocol) match.transport = value->front();
  if (equality && is_payload(left) && left.type->type == TypeName::kInetService) {
    match.statement.port = PortMatch{static_cast<std::uint32_t>(*left.load.number(NFTA_PAYLOAD_OFFSET)), *value};
  }
  return match;
}

void merge_ports(std::vector<Statement>& statements) {
  const auto of_offset = [](std::uint32_t offset) {
    return [offset](const Statement& each) { return each.port && each.port->offset == offset; };
  };
  const auto source = std::find_if(statements.begin(), statements.end(), of_offset(0));
  const auto destination = std::find_if(statements.begin(), statements.end(), of_offset(2));
  if (source == statements.end() || destination == statements.end()) return;
  Bytes both = source->port->value;
  both.insert(both.end(), destination->port->value.begin(), destination->port->value.end());
  source->expressions.front().set(NFTA_PAYLOAD_LEN, both.size());
  source->expressions.back() = comparison(0, NFT_CMP_EQ, std::move(both));
  source->port.reset();
  statements.erase(destination);
}

}  // namespace pointsman::nftables
