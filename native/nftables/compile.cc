#include "nftables/compile.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include <algorithm>
#include <array>

#include "nftables/compile_rule.h"
#include "nftables/cursor.h"

namespace pointsman::nftables {

namespace {

// A limit of the kernel: user data of 256 bytes with nft's two bytes of header and a NUL.
constexpr std::size_t kMaxComment = 127;
constexpr std::size_t kMaxKey = NFT_DATA_VALUE_MAXLEN;
constexpr std::int64_t kMaxTimeout = 365LL * 24 * 3600;
constexpr std::int64_t kMaxU32 = 0xffffffffLL;
/// NFT_TABLE_F_OWNER, which headers before Linux 5.12 do not know.
constexpr std::uint32_t kOwned = 2;

class Compiler {
 public:
  Compiler(Family family, std::string_view table, const SetLookup& declared, Diagnosis& diagnosis)
      : family_(family), table_(table), declared_(declared), diagnosis_(diagnosis) {}

  std::vector<Command> run(const json::Value& commands) {
    const Cursor list(&commands, "commands", diagnosis_);
    if (list.array() == nullptr) list.refuse("an array of commands");
    const std::size_t count = list.array() == nullptr ? 0 : list.array()->size();
    for (std::size_t index = 0; index < count && !diagnosis_.failed(); ++index) compile_command(list.item(index));
    return std::move(commands_);
  }

 private:
  void compile_command(const Cursor& at) {
    const auto tagged = at.tagged();
    if (!tagged) return;
    const auto& [verb, body] = *tagged;
    if (verb == "metainfo") return;
    if (verb == "add") return compile_object(Verb::kAdd, body);
    if (verb == "create") return compile_object(Verb::kCreate, body);
    if (verb == "insert") return compile_object(Verb::kInsert, body);
    if (verb == "delete") return compile_object(Verb::kDelete, body);
    if (verb == "flush") return compile_object(Verb::kFlush, body);
    body.fail("not a command this compiler takes");
  }

  void compile_object(Verb verb, const Cursor& at) {
    const auto tagged = at.tagged();
    if (!tagged) return;
    const auto& [kind, body] = *tagged;
    const bool is_timeout = kind == "ct timeout";
    const bool is_counter = kind == "counter";
    const bool known = kind == "table" || kind == "chain" || kind == "rule" || kind == "set" || kind == "map";
    if (!known && !is_timeout && !is_counter) return body.fail("not an object this compiler takes");
    if (verb == Verb::kInsert && kind != "rule") return body.fail("only rules are inserted");
    if (verb == Verb::kFlush && kind == "rule") return body.fail("a rule cannot be flushed");
    if (verb == Verb::kFlush && is_timeout) return body.fail("a ct timeout cannot be flushed");
    if (is_counter && verb != Verb::kDelete) return body.fail("counters are only deleted");
    check_owner(body, kind == "table" ? "name" : "table");
    if (kind == "table") return compile_table(verb, body);
    if (kind == "chain") return compile_chain(verb, body);
    if (kind == "rule") return compile_rule(verb, body);
    if (is_timeout) return compile_timeout(verb, body);
    if (is_counter) return compile_counter(verb, body);
    compile_set(verb, body, kind == "map");
  }

  void check_owner(const Cursor& at, std::string_view table_member) {
    const Cursor family = at.member("family");
    if (const std::string name = family.need_string(); name != family_name(family_) && !diagnosis_.failed()) {
      family.refuse(std::string("the transaction's family \"") + family_name(family_) + "\"");
    }
    const Cursor table = at.member(table_member);
    if (const std::string name = table.need_string(); name != table_ && !diagnosis_.failed()) {
      table.refuse("the transaction's table \"" + std::string(table_) + "\"");
    }
  }

  std::string need_name(const Cursor& at) {
    std::string name = at.need_string();
    if (name.size() > kMaxName) at.fail("longer than " + std::to_string(kMaxName) + " bytes");
    return name;
  }

  std::optional<std::string> comment_of(const Cursor& at) {
    const Cursor comment = at.member("comment");
    if (!comment.present() || comment.is_null()) return std::nullopt;
    std::string text = comment.need_string();
    if (text.size() > kMaxComment) comment.fail("longer than " + std::to_string(kMaxComment) + " bytes");
    return text;
  }

  void push(Verb verb, std::variant<Table, Chain, Set, Rule, Timeout, Counter> object) {
    if (!diagnosis_.failed()) commands_.push_back(Command{verb, std::move(object)});
  }

  void compile_table(Verb verb, const Cursor& at) {
    at.only({"family", "name", "flags", "comment"});
    Table table;
    const Cursor flags = at.member("flags");
    if (flags.present() && flags.need_string() != "owner") flags.refuse("owner");
    if (flags.present()) table.flags = kOwned;
    table.comment = comment_of(at);
    push(verb, std::move(table));
  }

  void compile_chain(Verb verb, const Cursor& at) {
    Chain chain;
    chain.name = need_name(at.member("name"));
    if (verb == Verb::kDelete || verb == Verb::kFlush) {
      at.only({"family", "table", "name"});
      return push(verb, std::move(chain));
    }
    at.only({"family", "table", "name", "type", "hook", "prio", "policy", "comment"});
    chain.comment = comment_of(at);
    if (at.member("type").present() || at.member("hook").present() || at.member("prio").present()) {
      chain.hook = compile_hook(at);
    } else if (at.member("policy").present()) {
      at.member("policy").fail("only a base chain has a policy");
    }
    push(verb, std::move(chain));
  }

  BaseHook compile_hook(const Cursor& at) {
    BaseHook hook;
    const Cursor type = at.member("type");
    hook.type = type.need_string();
    if (hook.type != "filter" && hook.type != "nat" && hook.type != "route") type.refuse("filter, nat or route");
    const Cursor name = at.member("hook");
    const auto number = hook_number(name.need_string());
    if (!number) name.refuse("prerouting, input, forward, output or postrouting");
    hook.hook = number.value_or(0);
    hook.priority = static_cast<std::int32_t>(at.member("prio").need_number(INT32_MIN, INT32_MAX));
    const Cursor policy = at.member("policy");
    hook.policy = NF_ACCEPT;
    if (!policy.present()) return hook;
    const std::string word = policy.need_string();
    if (word == "drop") hook.policy = NF_DROP;
    if (word != "drop" && word != "accept") policy.refuse("accept or drop");
    return hook;
  }

  void compile_rule(Verb verb, const Cursor& at) {
    Rule rule;
    rule.chain = need_name(at.member("chain"));
    if (verb == Verb::kDelete) {
      at.only({"family", "table", "chain", "handle"});
      rule.handle = static_cast<std::uint64_t>(at.member("handle").need_number(1, INT64_MAX));
      return push(verb, std::move(rule));
    }
    at.only({"family", "table", "chain", "expr", "comment"});
    rule.comment = comment_of(at);
    rule.expressions = compile_expressions(at.member("expr"), family_, [this](std::string_view name) { return set(name); });
    push(verb, std::move(rule));
  }

  // Every state of the protocol, as the kernel lists them: for states that it does not receive it takes its own values, and nft the built-in
  // ones.
  void compile_timeout(Verb verb, const Cursor& at) {
    Timeout timeout;
    timeout.name = need_name(at.member("name"));
    if (verb == Verb::kDelete) {
      at.only({"family", "table", "name"});
      return push(verb, std::move(timeout));
    }
    at.only({"family", "table", "name", "protocol", "l3proto", "policy"});
    const Cursor layer3 = at.member("l3proto");
    if (layer3.need_string() != family_name(family_)) layer3.refuse("the transaction's family");
    const Cursor protocol = at.member("protocol");
    const TimeoutProtocol* known = timeout_protocol(protocol.need_string());
    if (known == nullptr) return protocol.refuse("tcp or udp");
    timeout.protocol = known->number;
    const Cursor policy = at.member("policy");
    for (std::size_t index = 0; index < known->states.size(); ++index) {
      const Cursor state = policy.member(known->states[index].name);
      timeout.seconds[index] = static_cast<std::uint32_t>(state.need_number(0, kMaxU32));
    }
    if (policy.object() != nullptr && policy.object()->size() != known->states.size()) policy.fail("a state of another protocol");
    push(verb, std::move(timeout));
  }

  void compile_counter(Verb verb, const Cursor& at) {
    at.only({"family", "table", "name"});
    push(verb, Counter{need_name(at.member("name"))});
  }

  const Set* set(std::string_view name) const {
    for (auto command = commands_.rbegin(); command != commands_.rend(); ++command) {
      const auto* declared = std::get_if<Set>(&command->object);
      if (declared != nullptr && declared->name == name && command->verb != Verb::kFlush) {
        return command->verb == Verb::kDelete ? nullptr : declared;
      }
    }
    return declared_(name);
  }

  struct TypeSum {
    std::uint32_t id = 0;
    std::uint32_t length = 0;
    std::vector<std::uint32_t> lengths;
    ByteOrder order = ByteOrder::kNone;
    /// Bytes compare as the values do.
    bool ordered = true;
  };

  // A type name, or an array of them for a concatenation, whose components are padded to 4 bytes.
  TypeSum compile_type(const Cursor& at) {
    std::vector<Cursor> parts;
    if (const auto* items = at.array()) {
      for (std::size_t index = 0; index < items->size(); ++index) parts.push_back(at.item(index));
    } else {
      parts.push_back(at);
    }
    TypeSum sum;
    std::vector<ByteOrder> orders;
    if (parts.empty() || parts.size() > 5) at.fail("a type has one to five components");
    for (const Cursor& part : parts) {
      const Datatype* type = declared_type(part.need_string());
      if (type == nullptr) {
        part.refuse("ipv4_addr, ipv6_addr, inet_proto, inet_service, mark, ifname or integer");
        return sum;
      }
      sum.id = sum.id << 6 | type->id;
      sum.lengths.push_back(type->length);
      sum.order = type->order;
      orders.push_back(type->order);
      sum.length += parts.size() == 1 ? type->length : static_cast<std::uint32_t>(netlink::align4(type->length));
    }
    sum.ordered = std::all_of(orders.begin(), orders.end(), [](ByteOrder order) { return order == ByteOrder::kNetwork; });
    if (parts.size() > 1) sum.order = ByteOrder::kNone;
    if (sum.length > kMaxKey) at.fail("longer than " + std::to_string(kMaxKey) + " bytes");
    return sum;
  }

  std::uint32_t compile_set_flags(const Cursor& at) {
    std::uint32_t flags = 0;
    const std::size_t count = at.array() == nullptr ? 1 : at.array()->size();
    for (std::size_t index = 0; at.present() && index < count; ++index) {
      const Cursor item = at.array() == nullptr ? at : at.item(index);
      const std::string word = item.need_string();
      if (word == "constant") {
        flags |= NFT_SET_CONSTANT;
      } else if (word == "interval") {
        flags |= NFT_SET_INTERVAL;
      } else if (word == "timeout") {
        flags |= NFT_SET_TIMEOUT;
      } else if (word == "dynamic") {
        flags |= NFT_SET_EVAL;
      } else {
        item.refuse("constant, interval, timeout or dynamic");
      }
    }
    return flags;
  }

  void compile_set(Verb verb, const Cursor& at, bool map) {
    Set set;
    set.name = need_name(at.member("name"));
    set.flags = map ? NFT_SET_MAP : 0;
    if (verb == Verb::kDelete || verb == Verb::kFlush) {
      at.only({"family", "table", "name"});
      return push(verb, std::move(set));
    }
    at.only({"family", "table", "name", "type", "map", "flags", "timeout", "size", "comment"});
    set.comment = comment_of(at);
    set.flags |= compile_set_flags(at.member("flags"));
    const TypeSum key = compile_type(at.member("type"));
    set.key_type = key.id;
    set.key_length = key.length;
    set.key_order = key.order;
    if (!key.ordered && (set.flags & NFT_SET_INTERVAL) != 0) at.member("type").fail("mark, ifname and integer have no intervals");
    if (key.lengths.size() > 1 && (set.flags & NFT_SET_INTERVAL) != 0) {
      set.flags |= NFT_SET_CONCAT;
      set.field_lengths = key.lengths;
    }
    if (map) compile_content(set, at.member("map"));
    if (!map && at.member("map").present()) at.member("map").fail("a set has no content");
    compile_limits(set, at);
    push(verb, std::move(set));
  }

  void compile_content(Set& set, const Cursor& at) {
    if (at.string() != nullptr && *at.string() == "verdict") {
      set.data_type = static_cast<std::uint32_t>(NFT_DATA_VERDICT);
      return;
    }
    const TypeSum content = compile_type(at);
    set.data_type = content.id;
    set.data_length = content.length;
    set.data_order = content.order;
  }

  void compile_limits(Set& set, const Cursor& at) {
    if (const Cursor timeout = at.member("timeout"); timeout.present()) {
      set.timeout_ms = static_cast<std::uint64_t>(timeout.need_number(1, kMaxTimeout)) * 1000;
      set.flags |= NFT_SET_TIMEOUT;
    }
    if (const Cursor size = at.member("size"); size.present()) {
      set.size = static_cast<std::uint32_t>(size.need_number(1, kMaxU32));
    }
  }

  Family family_;
  std::string_view table_;
  const SetLookup& declared_;
  Diagnosis& diagnosis_;
  std::vector<Command> commands_;
};

}  // namespace

netlink::Result<std::vector<Command>, CompileError> compile_commands(Family family, std::string_view table,
                                                                     const json::Value& commands, const SetLookup& declared) {
  Diagnosis diagnosis;
  auto compiled = Compiler(family, table, declared, diagnosis).run(commands);
  if (diagnosis.failed()) return CompileError{diagnosis.text()};
  return compiled;
}

}  // namespace pointsman::nftables
