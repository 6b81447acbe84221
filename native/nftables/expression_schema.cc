#include "nftables/expression_schema.h"

#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>

#include <algorithm>
#include <array>

namespace pointsman::nftables {

namespace {

using enum FieldKind;

constexpr std::array kBases{ValueName{NFT_PAYLOAD_LL_HEADER, "link"}, ValueName{NFT_PAYLOAD_NETWORK_HEADER, "network"},
                            ValueName{NFT_PAYLOAD_TRANSPORT_HEADER, "transport"}};

constexpr std::array kMetaKeys{ValueName{NFT_META_MARK, "mark"},         ValueName{NFT_META_IIFNAME, "iifname"},
                               ValueName{NFT_META_OIFNAME, "oifname"},   ValueName{NFT_META_NFPROTO, "nfproto"},
                               ValueName{NFT_META_L4PROTO, "l4proto"},  ValueName{NFT_META_NFTRACE, "nftrace"}};

constexpr std::array kCtKeys{ValueName{NFT_CT_STATE, "state"},         ValueName{NFT_CT_STATUS, "status"},
                             ValueName{NFT_CT_DIRECTION, "direction"},
                             ValueName{NFT_CT_SRC_IP, "src_ip"},       ValueName{NFT_CT_DST_IP, "dst_ip"},
                             ValueName{NFT_CT_SRC_IP6, "src_ip6"},     ValueName{NFT_CT_DST_IP6, "dst_ip6"},
                             ValueName{NFT_CT_PROTO_SRC, "proto_src"}, ValueName{NFT_CT_PROTO_DST, "proto_dst"}};

constexpr std::array kDirections{ValueName{0, "original"}, ValueName{1, "reply"}};

constexpr std::array kComparisons{ValueName{NFT_CMP_EQ, "eq"}, ValueName{NFT_CMP_NEQ, "neq"},
                                  ValueName{NFT_CMP_LT, "lt"}, ValueName{NFT_CMP_LTE, "lte"},
                                  ValueName{NFT_CMP_GT, "gt"}, ValueName{NFT_CMP_GTE, "gte"}};

constexpr std::array kFibResults{ValueName{NFT_FIB_RESULT_OIF, "oif"}, ValueName{NFT_FIB_RESULT_OIFNAME, "oifname"},
                                 ValueName{NFT_FIB_RESULT_ADDRTYPE, "type"}};
constexpr std::array kFibFlags{ValueName{NFTA_FIB_F_SADDR, "saddr"}, ValueName{NFTA_FIB_F_DADDR, "daddr"}};

constexpr std::array kNumgenTypes{ValueName{NFT_NG_INCREMENTAL, "inc"}, ValueName{NFT_NG_RANDOM, "random"}};

constexpr std::array kHashTypes{ValueName{NFT_HASH_JENKINS, "jhash"}, ValueName{NFT_HASH_SYM, "symhash"}};

constexpr std::array kDynsetOps{ValueName{NFT_DYNSET_OP_ADD, "add"}, ValueName{NFT_DYNSET_OP_UPDATE, "update"},
                                ValueName{NFT_DYNSET_OP_DELETE, "delete"}};

constexpr std::array kNatTypes{ValueName{NFT_NAT_SNAT, "snat"}, ValueName{NFT_NAT_DNAT, "dnat"}};
constexpr std::array kFamilies{ValueName{2, "ip"}, ValueName{10, "ip6"}};

constexpr std::array kRejectTypes{ValueName{NFT_REJECT_ICMP_UNREACH, "icmp"}, ValueName{NFT_REJECT_TCP_RST, "tcp-reset"},
                                  ValueName{NFT_REJECT_ICMPX_UNREACH, "icmpx"}};

// The name that headers before Linux 6.12 know as well.
constexpr std::array kBitwiseOps{ValueName{NFT_BITWISE_BOOL, "mask-xor"}};
constexpr std::array kByteorderOps{ValueName{NFT_BYTEORDER_NTOH, "ntoh"}, ValueName{NFT_BYTEORDER_HTON, "hton"}};

constexpr std::array kPayload{
    FieldSchema{.attribute = NFTA_PAYLOAD_DREG, .name = "dreg", .kind = kBe32},
    FieldSchema{.attribute = NFTA_PAYLOAD_BASE, .name = "base", .kind = kBe32, .names = kBases},
    FieldSchema{.attribute = NFTA_PAYLOAD_OFFSET, .name = "offset", .kind = kBe32},
    FieldSchema{.attribute = NFTA_PAYLOAD_LEN, .name = "len", .kind = kBe32},
};

constexpr std::array kMeta{
    FieldSchema{.attribute = NFTA_META_KEY, .name = "key", .kind = kBe32, .names = kMetaKeys},
    FieldSchema{.attribute = NFTA_META_DREG, .name = "dreg", .kind = kBe32},
    FieldSchema{.attribute = NFTA_META_SREG, .name = "sreg", .kind = kBe32},
};

constexpr std::array kCt{
    FieldSchema{.attribute = NFTA_CT_KEY, .name = "key", .kind = kBe32, .names = kCtKeys},
    FieldSchema{.attribute = NFTA_CT_DREG, .name = "dreg", .kind = kBe32},
    FieldSchema{.attribute = NFTA_CT_DIRECTION, .name = "dir", .kind = kU8, .names = kDirections},
};

constexpr std::array kCmp{
    FieldSchema{.attribute = NFTA_CMP_SREG, .name = "sreg", .kind = kBe32},
    FieldSchema{.attribute = NFTA_CMP_OP, .name = "op", .kind = kBe32, .names = kComparisons},
    FieldSchema{.attribute = NFTA_CMP_DATA, .name = "value", .kind = kContent},
};

constexpr std::array kBitwise{
    FieldSchema{.attribute = NFTA_BITWISE_SREG, .name = "sreg", .kind = kBe32},
    FieldSchema{.attribute = NFTA_BITWISE_DREG, .name = "dreg", .kind = kBe32},
    FieldSchema{.attribute = NFTA_BITWISE_OP,
                .name = "op",
                .kind = kBe32,
                .implied = NFT_BITWISE_BOOL,
                .names = kBitwiseOps},
    FieldSchema{.attribute = NFTA_BITWISE_LEN, .name = "len", .kind = kBe32},
    FieldSchema{.attribute = NFTA_BITWISE_MASK, .name = "mask", .kind = kContent},
    FieldSchema{.attribute = NFTA_BITWISE_XOR, .name = "xor", .kind = kContent},
};

constexpr std::array kByteorder{
    FieldSchema{.attribute = NFTA_BYTEORDER_SREG, .name = "sreg", .kind = kBe32},
    FieldSchema{.attribute = NFTA_BYTEORDER_DREG, .name = "dreg", .kind = kBe32},
    FieldSchema{.attribute = NFTA_BYTEORDER_OP, .name = "op", .kind = kBe32, .names = kByteorderOps},
    FieldSchema{.attribute = NFTA_BYTEORDER_LEN, .name = "len", .kind = kBe32},
    FieldSchema{.attribute = NFTA_BYTEORDER_SIZE, .name = "size", .kind = kBe32},
};

constexpr std::array kLookup{
    FieldSchema{.attribute = NFTA_LOOKUP_SREG, .name = "sreg", .kind = kBe32},
    FieldSchema{.attribute = NFTA_LOOKUP_DREG, .name = "dreg", .kind = kBe32},
    FieldSchema{.attribute = NFTA_LOOKUP_SET, .name = "set", .kind = kString},
    FieldSchema{.attribute = NFTA_LOOKUP_FLAGS, .name = "flags", .kind = kBe32, .implied = 0},
};

constexpr std::array kImmediate{
    FieldSchema{.attribute = NFTA_IMMEDIATE_DREG, .name = "dreg", .kind = kBe32},
    FieldSchema{.attribute = NFTA_IMMEDIATE_DATA, .name = "value", .kind = kContent},
};

constexpr std::array kFib{
    FieldSchema{.attribute = NFTA_FIB_FLAGS, .name = "flags", .kind = kBe32, .names = kFibFlags},
    FieldSchema{.attribute = NFTA_FIB_RESULT, .name = "result", .kind = kBe32, .names = kFibResults},
    FieldSchema{.attribute = NFTA_FIB_DREG, .name = "dreg", .kind = kBe32},
};

constexpr std::array kNumgen{
    FieldSchema{.attribute = NFTA_NG_DREG, .name = "dreg", .kind = kBe32},
    FieldSchema{.attribute = NFTA_NG_MODULUS, .name = "mod", .kind = kBe32},
    FieldSchema{.attribute = NFTA_NG_TYPE, .name = "type", .kind = kBe32, .names = kNumgenTypes},
    FieldSchema{.attribute = NFTA_NG_OFFSET, .name = "offset", .kind = kBe32, .implied = 0},
};

constexpr std::array kHash{
    FieldSchema{.attribute = NFTA_HASH_SREG, .name = "sreg", .kind = kBe32},
    FieldSchema{.attribute = NFTA_HASH_DREG, .name = "dreg", .kind = kBe32},
    FieldSchema{.attribute = NFTA_HASH_LEN, .name = "len", .kind = kBe32},
    FieldSchema{.attribute = NFTA_HASH_MODULUS, .name = "mod", .kind = kBe32},
    FieldSchema{.attribute = NFTA_HASH_SEED, .name = "seed", .kind = kBe32},
    FieldSchema{.attribute = NFTA_HASH_OFFSET, .name = "offset", .kind = kBe32, .implied = 0},
    FieldSchema{.attribute = NFTA_HASH_TYPE, .name = "type", .kind = kBe32, .names = kHashTypes},
};

constexpr std::array kDynset{
    FieldSchema{.attribute = NFTA_DYNSET_SREG_KEY, .name = "key", .kind = kBe32},
    FieldSchema{.attribute = NFTA_DYNSET_SREG_DATA, .name = "content", .kind = kBe32},
    FieldSchema{.attribute = NFTA_DYNSET_OP, .name = "op", .kind = kBe32, .names = kDynsetOps},
    FieldSchema{.attribute = NFTA_DYNSET_TIMEOUT, .name = "timeout-ms", .kind = kBe64, .implied = 0},
    FieldSchema{.attribute = NFTA_DYNSET_SET_NAME, .name = "set", .kind = kString},
    FieldSchema{.attribute = NFTA_DYNSET_FLAGS, .name = "flags", .kind = kBe32, .implied = 0},
    FieldSchema{.attribute = NFTA_DYNSET_EXPR, .name = "with", .kind = kExpression},
};

// A nat's range flags: the two lowest mean that there are addresses and ports, which the registers show already.
constexpr std::uint64_t kRangeBits = NF_NAT_RANGE_MAP_IPS | NF_NAT_RANGE_PROTO_SPECIFIED;

constexpr std::array kNat{
    FieldSchema{.attribute = NFTA_NAT_TYPE, .name = "type", .kind = kBe32, .names = kNatTypes},
    FieldSchema{.attribute = NFTA_NAT_FAMILY, .name = "family", .kind = kBe32, .names = kFamilies},
    FieldSchema{.attribute = NFTA_NAT_REG_ADDR_MIN, .name = "address", .kind = kBe32},
    FieldSchema{.attribute = NFTA_NAT_REG_ADDR_MAX,
                .name = "address-max",
                .kind = kBe32,
                .implied_by = NFTA_NAT_REG_ADDR_MIN},
    FieldSchema{.attribute = NFTA_NAT_REG_PROTO_MIN, .name = "port", .kind = kBe32},
    FieldSchema{.attribute = NFTA_NAT_REG_PROTO_MAX,
                .name = "port-max",
                .kind = kBe32,
                .implied_by = NFTA_NAT_REG_PROTO_MIN},
    FieldSchema{.attribute = NFTA_NAT_FLAGS, .name = "flags", .kind = kBe32, .implied = 0, .derived_bits = kRangeBits},
};

constexpr std::array kMasquerade{
    FieldSchema{.attribute = NFTA_MASQ_FLAGS, .name = "flags", .kind = kBe32, .implied = 0, .derived_bits = kRangeBits},
    FieldSchema{.attribute = NFTA_MASQ_REG_PROTO_MIN, .name = "port", .kind = kBe32},
    FieldSchema{.attribute = NFTA_MASQ_REG_PROTO_MAX,
                .name = "port-max",
                .kind = kBe32,
                .implied_by = NFTA_MASQ_REG_PROTO_MIN},
};

constexpr std::array kReject{
    FieldSchema{.attribute = NFTA_REJECT_TYPE, .name = "type", .kind = kBe32, .names = kRejectTypes},
    FieldSchema{.attribute = NFTA_REJECT_ICMP_CODE, .name = "code", .kind = kU8, .implied = 0},
};

constexpr std::array kCounter{
    FieldSchema{.attribute = NFTA_COUNTER_BYTES, .name = "bytes", .kind = kBe64, .volatile_value = true},
    FieldSchema{.attribute = NFTA_COUNTER_PACKETS, .name = "packets", .kind = kBe64, .volatile_value = true},
};

constexpr std::array kLimitTypes{ValueName{NFT_LIMIT_PKTS, "packets"}, ValueName{NFT_LIMIT_PKT_BYTES, "bytes"}};

constexpr std::array kLimit{
    FieldSchema{.attribute = NFTA_LIMIT_RATE, .name = "rate", .kind = kBe64},
    FieldSchema{.attribute = NFTA_LIMIT_UNIT, .name = "per-seconds", .kind = kBe64},
    FieldSchema{.attribute = NFTA_LIMIT_BURST, .name = "burst", .kind = kBe32},
    FieldSchema{.attribute = NFTA_LIMIT_TYPE, .name = "type", .kind = kBe32, .names = kLimitTypes},
    FieldSchema{.attribute = NFTA_LIMIT_FLAGS, .name = "flags", .kind = kBe32, .implied = 0},
};

constexpr std::array kObjectTypes{ValueName{NFT_OBJECT_CT_TIMEOUT, "ct-timeout"}};

constexpr std::array kObjref{
    FieldSchema{.attribute = NFTA_OBJREF_IMM_TYPE, .name = "type", .kind = kBe32, .names = kObjectTypes},
    FieldSchema{.attribute = NFTA_OBJREF_IMM_NAME, .name = "name", .kind = kString},
};

constexpr std::array kSchemas{
    ExpressionSchema{"payload", kPayload},     ExpressionSchema{"meta", kMeta},
    ExpressionSchema{"ct", kCt},               ExpressionSchema{"cmp", kCmp},
    ExpressionSchema{"bitwise", kBitwise},     ExpressionSchema{"byteorder", kByteorder},
    ExpressionSchema{"lookup", kLookup},       ExpressionSchema{"immediate", kImmediate},
    ExpressionSchema{"fib", kFib},             ExpressionSchema{"numgen", kNumgen},
    ExpressionSchema{"dynset", kDynset},       ExpressionSchema{"nat", kNat},
    ExpressionSchema{"masq", kMasquerade},     ExpressionSchema{"reject", kReject},
    ExpressionSchema{"counter", kCounter},     ExpressionSchema{"hash", kHash},
    ExpressionSchema{"objref", kObjref},       ExpressionSchema{"limit", kLimit},
};

}  // namespace

const FieldSchema* ExpressionSchema::field(std::uint16_t attribute) const {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [=](const FieldSchema& each) { return each.attribute == attribute; });
  return found == fields.end() ? nullptr : &*found;
}

const ExpressionSchema* expression_schema(std::string_view name) {
  const auto found =
      std::find_if(kSchemas.begin(), kSchemas.end(), [=](const ExpressionSchema& each) { return each.name == name; });
  return found == kSchemas.end() ? nullptr : &*found;
}

std::optional<std::uint64_t> meta_key(std::string_view name) {
  const auto found =
      std::find_if(kMetaKeys.begin(), kMetaKeys.end(), [=](const ValueName& each) { return each.name == name; });
  if (found == kMetaKeys.end()) return std::nullopt;
  return found->value;
}

}  // namespace pointsman::nftables
