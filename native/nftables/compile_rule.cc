#include "nftables/compile_rule.h"

#include <linux/in.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>

#include <algorithm>
#include <array>
#include <span>

#include "nftables/match.h"
#include "nftables/operand.h"

namespace pointsman::nftables {

namespace {

constexpr std::size_t kSlotsPerRegister = NFT_REG_SIZE / NFT_REG32_SIZE;

struct Code {
  std::string_view name;
  std::uint8_t code;
};

// ICMP type 3 (RFC 792, 1122) and ICMPv6 type 1 (RFC 4443), by nft's names.
constexpr std::array kIcmpCodes{
    Code{"port-unreachable", 3}, Code{"net-unreachable", 0}, Code{"host-unreachable", 1}, Code{"prot-unreachable", 2},
    Code{"net-prohibited", 9},   Code{"host-prohibited", 10}, Code{"admin-prohibited", 13},
};
constexpr std::array kIcmpv6Codes{
    Code{"port-unreachable", 4}, Code{"no-route", 0},    Code{"admin-prohibited", 1},
    Code{"addr-unreachable", 3}, Code{"policy-fail", 5}, Code{"reject-route", 6},
};

class RuleCompiler {
 public:
  RuleCompiler(Family family, const SetLookup& sets) : family_(family), sets_(sets) {}

  void compile(const Cursor& at) {
    const auto tagged = at.tagged();
    if (!tagged) return;
    const auto& [kind, body] = *tagged;
    if (kind == "match") return compile_match_statement(body);
    if (kind == "accept") return compile_verdict(NF_ACCEPT, body);
    if (kind == "drop") return compile_verdict(NF_DROP, body);
    if (kind == "return") return compile_verdict(NFT_RETURN, body);
    if (kind == "jump") return compile_jump(NFT_JUMP, body);
    if (kind == "goto") return compile_jump(NFT_GOTO, body);
    if (kind == "vmap") return compile_vmap(body);
    if (kind == "mangle") return compile_mangle(body);
    if (kind == "dnat") return compile_dnat(body);
    if (kind == "masquerade") return compile_masquerade(body);
    if (kind == "reject") return compile_reject(body);
    if (kind == "set") return compile_update(body, "set");
    if (kind == "map") return compile_update(body, "map");
    if (kind == "counter") return push(counter(body));
    if (kind == "ct timeout") return compile_timeout_use(body);
    if (kind == "limit") return compile_limit(body);
    body.fail("not a statement this compiler takes");
  }

  std::vector<Expression> finish() {
    merge_ports(statements_);
    std::vector<Expression> expressions;
    for (Statement& statement : statements_) {
      for (Expression& each : statement.expressions) expressions.push_back(std::move(each));
    }
    return expressions;
  }

 private:
  void push(Statement statement) { statements_.push_back(std::move(statement)); }
  void push(Expression expression) { statements_.push_back(Statement{{std::move(expression)}, {}}); }

  Statement transport_match(std::uint8_t protocol) const {
    Expression load{"meta", {}, {}};
    load.set(NFTA_META_KEY, NFT_META_L4PROTO);
    load.set(NFTA_META_DREG, NFT_REG_1);
    return Statement{{std::move(load), comparison(0, NFT_CMP_EQ, Bytes{protocol})}, {}};
  }

  // nft matches the protocol before the first use of its header, unless the rule has done so.
  bool need_transport(std::uint8_t protocol, const Cursor& at) {
    if (!transport_) return true;
    if (*transport_ != protocol) at.fail("the rule matches another transport protocol before");
    return false;
  }

  void match_transports(const std::vector<Operand>& operands, const Cursor& at) {
    for (const Operand& operand : operands) {
      if (!operand.transport || !need_transport(*operand.transport, at)) continue;
      push(transport_match(*operand.transport));
      transport_ = operand.transport;
    }
  }

  // Hashes are taken where `hashes` shows that there are registers for what they are of.
  std::vector<Operand> operands(const Cursor& at, bool hashes = false) {
    std::vector<Operand> compiled = compile_operands(at, family_);
    if (!hashes && hashed_slots(compiled) != 0) at.fail("a hash is taken in the key of dnat's map alone");
    if (!at.failed()) match_transports(compiled, at);
    return compiled;
  }

  // `@name`
  static std::string set_name(const Cursor& at) {
    const std::string text = at.need_string();
    if (text.size() < 2 || text[0] != '@' || text.size() > kMaxName + 1) {
      at.refuse("a set or map as @name");
      return "";
    }
    return text.substr(1);
  }

  static Expression lookup(const std::string& set, std::optional<std::uint32_t> to_register, bool inverted) {
    Expression made{"lookup", {}, {}};
    made.set(NFTA_LOOKUP_SREG, NFT_REG_1);
    if (to_register) made.set(NFTA_LOOKUP_DREG, *to_register);
    made.fields.push_back(Field{NFTA_LOOKUP_SET, set});
    if (inverted) made.set(NFTA_LOOKUP_FLAGS, NFT_LOOKUP_F_INV);
    return made;
  }

  void compile_match_statement(const Cursor& at) {
    at.only({"op", "left", "right"});
    const std::vector<Operand> left = operands(at.member("left"));
    if (at.failed() || left.empty()) return;
    const Cursor right = at.member("right");
    const Cursor op = at.member("op");
    if (right.string() != nullptr && !right.string()->empty() && right.string()->front() == '@') {
      const std::string word = op.need_string();
      if (word != "==" && word != "!=" && word != "in") op.refuse("==, != or in for a set");
      Statement statement;
      emit_loads(left, 0, statement.expressions);
      statement.expressions.push_back(lookup(set_name(right), std::nullopt, word == "!="));
      return push(std::move(statement));
    }
    if (left.size() != 1) return right.refuse("a set as @name for a concatenation");
    Match match = compile_match(left.front(), op, right);
    if (at.failed()) return;
    if (match.transport) transport_ = match.transport;
    push(std::move(match.statement));
  }

  void push_verdict(Verdict verdict) {
    Expression immediate{"immediate", {}, {}};
    immediate.set(NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    immediate.fields.push_back(Field{NFTA_IMMEDIATE_DATA, std::move(verdict)});
    push(std::move(immediate));
  }

  void compile_verdict(std::int32_t code, const Cursor& at) {
    at.need_nothing();
    push_verdict(Verdict{code, ""});
  }

  void compile_jump(std::int32_t code, const Cursor& at) {
    at.only({"target"});
    const Cursor target = at.member("target");
    std::string chain = target.need_string();
    if (chain.size() > kMaxName) target.fail("longer than " + std::to_string(kMaxName) + " bytes");
    push_verdict(Verdict{code, std::move(chain)});
  }

  void compile_vmap(const Cursor& at) {
    at.only({"key", "data"});
    const std::vector<Operand> key = operands(at.member("key"));
    Statement statement;
    emit_loads(key, 0, statement.expressions);
    statement.expressions.push_back(lookup(set_name(at.member("data")), NFT_REG_VERDICT, false));
    push(std::move(statement));
  }

  void compile_mangle(const Cursor& at) {
    at.only({"key", "value"});
    if (const std::string* name = at.member("key").member("meta").member("key").string(); name != nullptr && *name == "nftrace") {
      const std::int64_t on = at.member("value").need_number(0, 1);
      return push(store_constant(NFT_META_NFTRACE, Bytes{static_cast<std::uint8_t>(on)}));
    }
    const auto key = compile_operand(at.member("key"), family_);
    if (!key) return;
    if (key->load.name != "meta" || key->type->type != TypeName::kMark || key->masked()) {
      return at.member("key").fail("only the packet mark and nftrace can be set");
    }
    const Cursor value = at.member("value");
    if (value.object() == nullptr) {
      if (const auto constant = compile_constant(value, *key->type)) push(store_constant(NFT_META_MARK, *constant));
      return;
    }
    const auto operand = compile_operand(value, family_);
    if (!operand) return;
    if (!operand->hashed.empty()) return value.fail("a hash is taken in the key of dnat's map alone");
    if (operand->type->type != TypeName::kMark && operand->type->type != TypeName::kInteger) {
      return value.fail("not a mark");
    }
    Statement statement;
    emit_loads({*operand}, 0, statement.expressions);
    statement.expressions.push_back(store_meta(NFT_META_MARK));
    push(std::move(statement));
  }

  static Expression store_meta(std::uint32_t key) {
    Expression store{"meta", {}, {}};
    store.set(NFTA_META_KEY, key);
    store.set(NFTA_META_SREG, NFT_REG_1);
    return store;
  }

  static Statement store_constant(std::uint32_t key, const Bytes& constant) {
    Expression immediate{"immediate", {}, {}};
    immediate.set(NFTA_IMMEDIATE_DREG, NFT_REG_1);
    immediate.fields.push_back(Field{NFTA_IMMEDIATE_DATA, constant});
    return Statement{{std::move(immediate), store_meta(key)}, {}};
  }

  // Packets, not bytes.
  void compile_limit(const Cursor& at) {
    at.only({"rate", "per", "burst"});
    constexpr std::array<std::pair<std::string_view, std::uint64_t>, 3> kUnits{{{"second", 1}, {"minute", 60}, {"hour", 3600}}};
    const Cursor per = at.member("per");
    const std::string word = per.need_string();
    const auto unit = std::find_if(kUnits.begin(), kUnits.end(), [&](const auto& each) { return each.first == word; });
    if (unit == kUnits.end()) return per.refuse("second, minute or hour");
    Expression limit{"limit", {}, {}};
    limit.set(NFTA_LIMIT_RATE, static_cast<std::uint64_t>(at.member("rate").need_number(1, INT32_MAX)));
    limit.set(NFTA_LIMIT_UNIT, unit->second);
    limit.set(NFTA_LIMIT_BURST, static_cast<std::uint64_t>(at.member("burst").need_number(1, INT32_MAX)));
    limit.set(NFTA_LIMIT_TYPE, NFT_LIMIT_PKTS);
    push(std::move(limit));
  }

  std::uint32_t nat_flags(const Cursor& at) {
    std::uint32_t flags = 0;
    const std::size_t count = at.array() == nullptr ? 1 : at.array()->size();
    for (std::size_t index = 0; at.present() && index < count; ++index) {
      const Cursor item = at.array() == nullptr ? at : at.item(index);
      const std::string word = item.need_string();
      if (word == "random") {
        flags |= NF_NAT_RANGE_PROTO_RANDOM;
      } else if (word == "fully-random") {
        flags |= NF_NAT_RANGE_PROTO_RANDOM_FULLY;
      } else if (word == "persistent") {
        flags |= NF_NAT_RANGE_PERSISTENT;
      } else {
        item.refuse("random, fully-random or persistent");
      }
    }
    return flags;
  }

  // Whether the map yields ports after addresses; see compile_commands for maps declared elsewhere.
  bool maps_to_ports(const std::string& map, const Cursor& at) {
    const Set* declared = sets_(map);
    if (declared == nullptr) return true;
    const TypeName address = family_ == Family::kIp ? TypeName::kIpv4Address : TypeName::kIpv6Address;
    const auto types = components_of(declared->data_type);
    const bool fits = declared->is_map() && !declared->is_verdict_map() && types && types->front()->type == address &&
                      types->size() <= 2 && (types->size() == 1 || types->back()->type == TypeName::kInetService);
    if (!fits) at.fail("the map yields neither addresses nor addresses with ports");
    return types && types->size() == 2;
  }

  void compile_dnat(const Cursor& at) {
    at.only({"family", "addr", "flags"});
    const Cursor family = at.member("family");
    if (family.present() && family.need_string() != family_name(family_)) family.refuse("the table's family");
    const Cursor address = at.member("addr");
    address.only({"map"});
    const Cursor map = address.member("map");
    map.only({"key", "data"});
    const std::vector<Operand> key = operands(map.member("key"), true);
    const std::string name = set_name(map.member("data"));
    // As nft does: behind the key, and behind the register that it keeps for what the map yields.
    const std::size_t hashed = kSlotsPerRegister + slots_of(key);
    if (hashed_slots(key) != 0 && hashed + hashed_slots(key) > kSlots) map.member("key").fail("longer than the 64 bytes of registers");
    if (at.failed()) return;
    Statement statement;
    emit_loads(key, 0, statement.expressions, hashed);
    statement.expressions.push_back(lookup(name, NFT_REG_1, false));
    Expression nat{"nat", {}, {}};
    nat.set(NFTA_NAT_TYPE, NFT_NAT_DNAT);
    nat.set(NFTA_NAT_FAMILY, static_cast<std::uint64_t>(family_));
    nat.set(NFTA_NAT_REG_ADDR_MIN, NFT_REG_1);
    const std::size_t address_slots = family_ == Family::kIp ? 1 : kSlotsPerRegister;
    if (maps_to_ports(name, map.member("data"))) nat.set(NFTA_NAT_REG_PROTO_MIN, register_of(address_slots));
    if (const std::uint32_t flags = nat_flags(at.member("flags")); flags != 0) nat.set(NFTA_NAT_FLAGS, flags);
    statement.expressions.push_back(std::move(nat));
    push(std::move(statement));
  }

  void compile_timeout_use(const Cursor& at) {
    std::string name = at.need_string();
    if (name.size() > kMaxName) at.fail("longer than " + std::to_string(kMaxName) + " bytes");
    Expression use{"objref", {}, {}};
    use.set(NFTA_OBJREF_IMM_TYPE, NFT_OBJECT_CT_TIMEOUT);
    use.fields.push_back(Field{NFTA_OBJREF_IMM_NAME, std::move(name)});
    push(std::move(use));
  }

  void compile_masquerade(const Cursor& at) {
    Expression masquerade{"masq", {}, {}};
    if (!at.is_null()) {
      at.only({"flags"});
      if (const std::uint32_t flags = nat_flags(at.member("flags")); flags != 0) masquerade.set(NFTA_MASQ_FLAGS, flags);
    }
    push(std::move(masquerade));
  }

  void compile_reject(const Cursor& at) {
    const bool v4 = family_ == Family::kIp;
    const std::span<const Code> codes = v4 ? std::span<const Code>(kIcmpCodes) : std::span<const Code>(kIcmpv6Codes);
    std::uint32_t type = NFT_REJECT_ICMP_UNREACH;
    std::uint8_t code = codes.front().code;
    if (!at.is_null()) {
      at.only({"type", "expr"});
      const Cursor kind = at.member("type");
      const std::string word = kind.need_string();
      const Cursor name = at.member("expr");
      if (word == "tcp reset") {
        if (name.present()) name.fail("a reset has no code");
        type = NFT_REJECT_TCP_RST;
        code = 0;
        reset_needs_tcp(kind);
      } else if (word != (v4 ? "icmp" : "icmpv6")) {
        kind.refuse(v4 ? "tcp reset or icmp" : "tcp reset or icmpv6");
      } else if (name.present()) {
        const std::string code_name = name.need_string();
        const auto found = std::find_if(codes.begin(), codes.end(), [&](const Code& each) { return each.name == code_name; });
        if (found == codes.end()) return name.refuse("a code of destination unreachable");
        code = found->code;
      }
    }
    Expression reject{"reject", {}, {}};
    reject.set(NFTA_REJECT_TYPE, type);
    reject.set(NFTA_REJECT_ICMP_CODE, code);
    push(std::move(reject));
  }

  // Unlike other dependencies, nft puts this one in front of the whole rule.
  void reset_needs_tcp(const Cursor& at) {
    if (!need_transport(IPPROTO_TCP, at)) return;
    statements_.insert(statements_.begin(), transport_match(IPPROTO_TCP));
    transport_ = IPPROTO_TCP;
  }

  void compile_update(const Cursor& at, std::string_view kind) {
    const bool map = kind == "map";
    if (map) at.only({"op", "elem", "data", "map", "stmt"});
    if (!map) at.only({"op", "elem", "set", "stmt"});
    const Cursor op = at.member("op");
    const std::string word = op.need_string();
    if (word != "add" && word != "update" && word != "delete") op.refuse("add, update or delete");
    Cursor element = at.member("elem");
    std::uint64_t timeout_ms = 0;
    if (const Cursor inner = element.member("elem"); inner.present()) {
      element.only({"elem"});
      inner.only({"val", "timeout"});
      if (const Cursor timeout = inner.member("timeout"); timeout.present()) {
        timeout_ms = static_cast<std::uint64_t>(timeout.need_number(1, 365LL * 24 * 3600)) * 1000;
      }
      element = inner.member("val");
    }
    const std::vector<Operand> key = operands(element);
    const std::vector<Operand> content = map ? operands(at.member("data")) : std::vector<Operand>{};
    // nft starts the content at a whole register; where that is past the last one, right behind the key.
    const std::size_t key_slots = slots_of(key);
    std::size_t slot = (key_slots + kSlotsPerRegister - 1) / kSlotsPerRegister * kSlotsPerRegister;
    if (slot + slots_of(content) > kSlots) slot = key_slots;
    if (slot + slots_of(content) > kSlots) at.fail("key and content do not fit the 64 bytes of registers");
    Statement statement;
    emit_loads(key, 0, statement.expressions);
    emit_loads(content, slot, statement.expressions);
    Expression dynset{"dynset", {}, {}};
    dynset.set(NFTA_DYNSET_SREG_KEY, NFT_REG_1);
    if (map) dynset.set(NFTA_DYNSET_SREG_DATA, register_of(slot));
    dynset.set(NFTA_DYNSET_OP, word == "add" ? NFT_DYNSET_OP_ADD
                               : word == "update" ? NFT_DYNSET_OP_UPDATE
                                                  : NFT_DYNSET_OP_DELETE);
    if (timeout_ms != 0) dynset.set(NFTA_DYNSET_TIMEOUT, timeout_ms);
    dynset.fields.push_back(Field{NFTA_DYNSET_SET_NAME, set_name(at.member(kind))});
    if (const Cursor kept = at.member("stmt"); kept.present()) compile_kept(kept, dynset);
    statement.expressions.push_back(std::move(dynset));
    push(std::move(statement));
  }

  // What the element keeps for itself; nft takes several statements, here it is one counter.
  void compile_kept(const Cursor& at, Expression& dynset) {
    if (at.array() == nullptr || at.array()->size() != 1) return at.refuse("an array of one counter");
    const auto tagged = at.item(0).tagged();
    if (!tagged) return;
    const auto& [kind, body] = *tagged;
    if (kind != "counter") return body.fail("not a statement that elements keep here");
    dynset.fields.push_back(Field{NFTA_DYNSET_EXPR, std::vector<Expression>{counter(body)}});
  }

  static Expression counter(const Cursor& at) {
    Expression made{"counter", {}, {}};
    if (!at.is_null()) {
      at.only({"packets", "bytes"});
      made.set(NFTA_COUNTER_BYTES, static_cast<std::uint64_t>(at.member("bytes").need_number(0, INT64_MAX)));
      made.set(NFTA_COUNTER_PACKETS, static_cast<std::uint64_t>(at.member("packets").need_number(0, INT64_MAX)));
    }
    return made;
  }

  Family family_;
  const SetLookup& sets_;
  std::vector<Statement> statements_;
  std::optional<std::uint8_t> transport_;
};

}  // namespace

std::vector<Expression> compile_expressions(const Cursor& statements, Family family, const SetLookup& sets) {
  if (statements.array() == nullptr) {
    statements.refuse("an array of statements");
    return {};
  }
  RuleCompiler compiler(family, sets);
  for (std::size_t index = 0; index < statements.array()->size() && !statements.failed(); ++index) {
    compiler.compile(statements.item(index));
  }
  return compiler.finish();
}

}  // namespace pointsman::nftables
