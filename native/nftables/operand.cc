#include "nftables/operand.h"

#include <linux/in.h>
#include <linux/netfilter/nf_tables.h>

#include <algorithm>

#include "nftables/expression_schema.h"

namespace pointsman::nftables {

namespace {

constexpr std::size_t kMaxComponents = 5;

struct HeaderField {
  std::string_view name;
  TypeName type;
  std::uint32_t offset;
};

// Offsets: RFC 791, RFC 8200; ports are the first four bytes of TCP, UDP and SCTP alike.
constexpr HeaderField kIpFields[] = {{"saddr", TypeName::kIpv4Address, 12}, {"daddr", TypeName::kIpv4Address, 16}};
constexpr HeaderField kIp6Fields[] = {{"saddr", TypeName::kIpv6Address, 8}, {"daddr", TypeName::kIpv6Address, 24}};
constexpr HeaderField kPorts[] = {{"sport", TypeName::kInetService, 0}, {"dport", TypeName::kInetService, 2}};
constexpr HeaderField kTcpFields[] = {
    {"sport", TypeName::kInetService, 0}, {"dport", TypeName::kInetService, 2}, {"flags", TypeName::kTcpFlags, 13}};

struct Header {
  std::string_view protocol;
  std::span<const HeaderField> fields;
  std::uint32_t base;
  std::optional<std::uint8_t> transport;
};

const Header kHeaders[] = {
    {"ip", kIpFields, NFT_PAYLOAD_NETWORK_HEADER, std::nullopt},
    {"ip6", kIp6Fields, NFT_PAYLOAD_NETWORK_HEADER, std::nullopt},
    {"th", kPorts, NFT_PAYLOAD_TRANSPORT_HEADER, std::nullopt},
    {"tcp", kTcpFields, NFT_PAYLOAD_TRANSPORT_HEADER, IPPROTO_TCP},
    {"udp", kPorts, NFT_PAYLOAD_TRANSPORT_HEADER, IPPROTO_UDP},
    {"sctp", kPorts, NFT_PAYLOAD_TRANSPORT_HEADER, IPPROTO_SCTP},
};

Operand operand(TypeName type, Expression load, std::uint16_t register_attribute) {
  Operand made;
  made.type = &datatype(type);
  made.length = made.type->length;
  made.load = std::move(load);
  made.register_attribute = register_attribute;
  return made;
}

std::optional<Operand> compile_payload(const Cursor& at, Family family) {
  at.only({"protocol", "field"});
  const Cursor protocol = at.member("protocol");
  const std::string protocol_name = protocol.need_string();
  const std::string field_name = at.member("field").need_string();
  for (const Header& header : kHeaders) {
    if (header.protocol != protocol_name) continue;
    if (header.base == NFT_PAYLOAD_NETWORK_HEADER && protocol_name != family_name(family)) {
      protocol.fail("a header of the other family than the table's");
      return std::nullopt;
    }
    for (const HeaderField& field : header.fields) {
      if (field.name != field_name) continue;
      Expression load{"payload", {}, {}};
      load.set(NFTA_PAYLOAD_BASE, header.base);
      load.set(NFTA_PAYLOAD_OFFSET, field.offset);
      load.set(NFTA_PAYLOAD_LEN, datatype(field.type).length);
      Operand made = operand(field.type, std::move(load), NFTA_PAYLOAD_DREG);
      made.transport = header.transport;
      return made;
    }
    const bool has_flags = header.transport == IPPROTO_TCP;
    at.member("field").refuse(header.base == NFT_PAYLOAD_NETWORK_HEADER ? "saddr or daddr"
                              : has_flags                               ? "sport, dport or flags"
                                                                        : "sport or dport");
    return std::nullopt;
  }
  protocol.refuse("ip, ip6, th, tcp, udp or sctp");
  return std::nullopt;
}

std::optional<Operand> compile_meta(const Cursor& at) {
  at.only({"key"});
  const Cursor key = at.member("key");
  const auto number = meta_key(key.need_string());
  // A rule may set nftrace; to match it is of no use.
  if (!number || *number == NFT_META_NFTRACE) {
    key.refuse("mark, iifname, oifname, nfproto or l4proto");
    return std::nullopt;
  }
  TypeName type = TypeName::kMark;
  if (*number == NFT_META_IIFNAME || *number == NFT_META_OIFNAME) type = TypeName::kInterfaceName;
  if (*number == NFT_META_NFPROTO) type = TypeName::kNfProtocol;
  if (*number == NFT_META_L4PROTO) type = TypeName::kInetProtocol;
  Expression load{"meta", {}, {}};
  load.set(NFTA_META_KEY, *number);
  return operand(type, std::move(load), NFTA_META_DREG);
}

struct CtKey {
  std::string_view name;
  std::uint32_t key;
  TypeName type;
  bool directed;
};

constexpr CtKey kCtOperands[] = {
    {"state", NFT_CT_STATE, TypeName::kCtState, false},
    {"status", NFT_CT_STATUS, TypeName::kCtStatus, false},
    {"direction", NFT_CT_DIRECTION, TypeName::kCtDirection, false},
    {"ip saddr", NFT_CT_SRC_IP, TypeName::kIpv4Address, true},
    {"ip daddr", NFT_CT_DST_IP, TypeName::kIpv4Address, true},
    {"ip6 saddr", NFT_CT_SRC_IP6, TypeName::kIpv6Address, true},
    {"ip6 daddr", NFT_CT_DST_IP6, TypeName::kIpv6Address, true},
    {"proto-src", NFT_CT_PROTO_SRC, TypeName::kInetService, true},
    {"proto-dst", NFT_CT_PROTO_DST, TypeName::kInetService, true},
};

std::optional<Operand> compile_ct(const Cursor& at, Family family) {
  at.only({"key", "dir"});
  const Cursor key = at.member("key");
  const std::string name = key.need_string();
  for (const CtKey& each : kCtOperands) {
    if (each.name != name) continue;
    const bool other_family = family == Family::kIp ? each.type == TypeName::kIpv6Address : each.type == TypeName::kIpv4Address;
    if (other_family) {
      key.fail("an address of the other family than the table's");
      return std::nullopt;
    }
    Expression load{"ct", {}, {}};
    load.set(NFTA_CT_KEY, each.key);
    const Cursor direction = at.member("dir");
    if (each.directed) {
      const std::string word = direction.need_string();
      if (word != "original" && word != "reply") direction.refuse("original or reply");
      load.set(NFTA_CT_DIRECTION, word == "reply" ? 1 : 0);
    } else if (direction.present()) {
      direction.fail("this key has no direction");
    }
    return operand(each.type, std::move(load), NFTA_CT_DREG);
  }
  key.refuse("state, status, direction, ip saddr, ip daddr, ip6 saddr, ip6 daddr, proto-src or proto-dst");
  return std::nullopt;
}

std::optional<Operand> compile_fib(const Cursor& at) {
  at.only({"result", "flags"});
  const Cursor result = at.member("result");
  if (result.need_string() != "type") result.refuse("type");
  const Cursor flags = at.member("flags");
  const Cursor flag = flags.array() == nullptr ? flags : flags.item(0);
  const std::string word = flag.need_string();
  if (word != "saddr" && word != "daddr") flag.refuse("saddr or daddr");
  if (flags.array() != nullptr && flags.array()->size() != 1) flags.fail("expected one of saddr and daddr");
  Expression load{"fib", {}, {}};
  load.set(NFTA_FIB_FLAGS, word == "saddr" ? NFTA_FIB_F_SADDR : NFTA_FIB_F_DADDR);
  load.set(NFTA_FIB_RESULT, NFT_FIB_RESULT_ADDRTYPE);
  return operand(TypeName::kFibType, std::move(load), NFTA_FIB_DREG);
}

std::optional<Operand> compile_numgen(const Cursor& at) {
  at.only({"mode", "mod", "offset"});
  const Cursor mode = at.member("mode");
  const std::string word = mode.need_string();
  if (word != "random" && word != "inc") mode.refuse("random or inc");
  Expression load{"numgen", {}, {}};
  load.set(NFTA_NG_MODULUS, static_cast<std::uint64_t>(at.member("mod").need_number(1, 0xffffffffLL)));
  load.set(NFTA_NG_TYPE, word == "random" ? NFT_NG_RANDOM : NFT_NG_INCREMENTAL);
  const Cursor offset = at.member("offset");
  const auto start = offset.present() ? offset.need_number(0, 0xffffffffLL) : 0;
  load.set(NFTA_NG_OFFSET, static_cast<std::uint64_t>(start));
  return operand(TypeName::kInteger, std::move(load), NFTA_NG_DREG);
}

std::optional<Operand> compile_jhash(const Cursor& at, Family family) {
  at.only({"mod", "seed", "offset", "expr"});
  const Cursor hashed = at.member("expr");
  std::vector<Operand> operands = compile_operands(hashed, family);
  if (operands.empty()) return std::nullopt;
  if (hashed_slots(operands) != 0) hashed.fail("a hash of a hash");
  Expression load{"hash", {}, {}};
  load.set(NFTA_HASH_LEN, slots_of(operands) * NFT_REG32_SIZE);
  load.set(NFTA_HASH_MODULUS, static_cast<std::uint64_t>(at.member("mod").need_number(1, 0xffffffffLL)));
  load.set(NFTA_HASH_SEED, static_cast<std::uint64_t>(at.member("seed").need_number(0, 0xffffffffLL)));
  const Cursor offset = at.member("offset");
  const auto start = offset.present() ? offset.need_number(0, 0xffffffffLL) : 0;
  load.set(NFTA_HASH_OFFSET, static_cast<std::uint64_t>(start));
  load.set(NFTA_HASH_TYPE, NFT_HASH_JENKINS);
  Operand made = operand(TypeName::kInteger, std::move(load), NFTA_HASH_DREG);
  made.hashed = std::move(operands);
  return made;
}

// Folds one more `&`, `|` or `^` with a constant into mask and toggle.
void fold(Operand& to, char operation, const Bytes& value) {
  if (!to.masked()) {
    to.mask.assign(to.length, 0xff);
    to.toggle.assign(to.length, 0);
  }
  for (std::size_t index = 0; index < value.size(); ++index) {
    std::uint8_t& mask = to.mask[index];
    std::uint8_t& toggle = to.toggle[index];
    const std::uint8_t bits = value[index];
    const auto others = static_cast<std::uint8_t>(~bits);
    if (operation == '&') {
      mask &= bits;
      toggle &= bits;
    } else if (operation == '|') {
      mask &= others;
      toggle |= bits;
    } else {
      toggle ^= bits;
    }
  }
}

std::optional<Operand> compile_bitwise(const Cursor& at, char operation, Family family) {
  if (at.array() == nullptr || at.array()->size() != 2) {
    at.refuse("an array of an expression and a constant");
    return std::nullopt;
  }
  auto made = compile_operand(at.item(0), family);
  if (!made) return std::nullopt;
  if (made->type->type == TypeName::kInterfaceName) {
    at.item(0).fail("an interface name has no bits to work on");
    return std::nullopt;
  }
  const auto value = compile_constant(at.item(1), *made->type);
  if (!value) return std::nullopt;
  fold(*made, operation, *value);
  return made;
}

}  // namespace

std::optional<Operand> compile_operand(const Cursor& at, Family family) {
  const auto tagged = at.tagged();
  if (!tagged) return std::nullopt;
  const auto& [kind, body] = *tagged;
  if (kind == "payload") return compile_payload(body, family);
  if (kind == "meta") return compile_meta(body);
  if (kind == "ct") return compile_ct(body, family);
  if (kind == "fib") return compile_fib(body);
  if (kind == "numgen") return compile_numgen(body);
  if (kind == "jhash") return compile_jhash(body, family);
  if (kind == "&" || kind == "|" || kind == "^") return compile_bitwise(body, kind[0], family);
  body.fail("not an expression this compiler takes here");
  return std::nullopt;
}

std::vector<Operand> compile_operands(const Cursor& at, Family family) {
  std::vector<Operand> operands;
  const Cursor parts = at.member("concat");
  const std::size_t count = parts.array() == nullptr ? 0 : parts.array()->size();
  if (!parts.present()) {
    if (auto single = compile_operand(at, family)) operands.push_back(*std::move(single));
    return operands;
  }
  at.only({"concat"});
  if (count < 2 || count > kMaxComponents) parts.refuse("an array of two to five expressions");
  for (std::size_t index = 0; index < count && !at.failed(); ++index) {
    if (auto part = compile_operand(parts.item(index), family)) operands.push_back(*std::move(part));
  }
  if (slots_of(operands) > kSlots) parts.fail("longer than the 64 bytes of registers");
  return operands;
}

std::optional<Bytes> compile_constant(const Cursor& at, const Datatype& type) {
  std::optional<Bytes> value;
  if (const auto* number = at.number()) value = number_constant(type, *number);
  if (const auto* text = at.string()) value = parse_constant(type, *text);
  if (const auto* words = at.array(); words != nullptr && type.bitmask && !words->empty()) {
    value = Bytes(type.length);
    for (std::size_t index = 0; index < words->size(); ++index) {
      const auto bits = compile_constant(at.item(index), type);
      if (!bits) return std::nullopt;
      for (std::size_t byte = 0; byte < type.length; ++byte) (*value)[byte] |= (*bits)[byte];
    }
  }
  if (!value) at.refuse(std::string("a constant of type ") + type.name);
  return value;
}

std::uint32_t register_of(std::size_t slot) {
  constexpr std::size_t kSlotsPerRegister = NFT_REG_SIZE / NFT_REG32_SIZE;
  if (slot % kSlotsPerRegister == 0) return static_cast<std::uint32_t>(NFT_REG_1 + slot / kSlotsPerRegister);
  return static_cast<std::uint32_t>(NFT_REG32_00 + slot);
}

std::size_t slots_of(const std::vector<Operand>& operands) {
  std::size_t slots = 0;
  for (const Operand& operand : operands) slots += netlink::align4(operand.length) / NFT_REG32_SIZE;
  return slots;
}

std::size_t hashed_slots(const std::vector<Operand>& operands) {
  std::size_t slots = 0;
  for (const Operand& operand : operands) slots = std::max(slots, slots_of(operand.hashed));
  return slots;
}

void emit_loads(const std::vector<Operand>& operands, std::size_t slot, std::vector<Expression>& to,
                std::size_t hashed) {
  for (const Operand& operand : operands) {
    Expression load = operand.load;
    if (!operand.hashed.empty()) {
      emit_loads(operand.hashed, hashed, to);
      load.set(NFTA_HASH_SREG, register_of(hashed));
    }
    load.set(operand.register_attribute, register_of(slot));
    to.push_back(std::move(load));
    if (operand.masked()) emit_bitwise(slot, operand.mask, operand.toggle, to);
    slot += netlink::align4(operand.length) / NFT_REG32_SIZE;
  }
}

void emit_bitwise(std::size_t slot, const Bytes& mask, const Bytes& toggle, std::vector<Expression>& to) {
  Expression bitwise{"bitwise", {}, {}};
  bitwise.set(NFTA_BITWISE_SREG, register_of(slot));
  bitwise.set(NFTA_BITWISE_DREG, register_of(slot));
  bitwise.set(NFTA_BITWISE_OP, NFT_BITWISE_BOOL);
  bitwise.set(NFTA_BITWISE_LEN, mask.size());
  bitwise.fields.push_back(Field{NFTA_BITWISE_MASK, mask});
  bitwise.fields.push_back(Field{NFTA_BITWISE_XOR, toggle});
  to.push_back(std::move(bitwise));
}

}  // namespace pointsman::nftables
