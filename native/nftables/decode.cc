#include "nftables/decode.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include "nftables/user_data.h"

namespace pointsman::nftables {

namespace {

using netlink::Attribute;
using netlink::AttributeReader;
using netlink::decode_error;
using netlink::Error;

/// NFTA_DEVICE_PREFIX, which older headers lack.
constexpr std::uint16_t kDevicePrefix = 2;

void read_devices(ByteView attributes, std::vector<std::string>& to) {
  AttributeReader reader(attributes);
  while (const auto each = reader.next()) {
    if (each->type == NFTA_DEVICE_NAME) to.emplace_back(each->string());
    if (each->type == kDevicePrefix) to.push_back(std::string(each->string()) + "*");
  }
}

/// By the numbers of the family inet.
std::uint32_t hook_in(std::optional<std::uint8_t> family, std::uint32_t hook) {
  if (family != static_cast<std::uint8_t>(Family::kNetdev)) return hook;
  if (hook == NF_NETDEV_INGRESS) return NF_INET_INGRESS;
  return hook == 1 ? kEgress : UINT32_MAX;
}

std::optional<BaseHook> read_hook(const Attribute& attribute) {
  BaseHook hook;
  AttributeReader reader(attribute.payload);
  bool complete = false;
  while (const auto each = reader.next()) {
    if (each->type == NFTA_HOOK_HOOKNUM) hook.hook = each->be32().value_or(UINT32_MAX);
    if (each->type == NFTA_HOOK_PRIORITY && each->payload.size() == 4) {
      hook.priority = static_cast<std::int32_t>(*each->be32());
      complete = true;
    }
    // The kernel has one device in both.
    if (each->type == NFTA_HOOK_DEV && hook.devices.empty()) hook.devices.emplace_back(each->string());
    if (each->type == NFTA_HOOK_DEVS) {
      hook.devices.clear();
      read_devices(each->payload, hook.devices);
    }
  }
  if (reader.malformed() || !complete) return std::nullopt;
  return hook;
}

bool read_description(ByteView attributes, Set& set) {
  AttributeReader reader(attributes);
  while (const auto attribute = reader.next()) {
    if (attribute->type == NFTA_SET_DESC_SIZE) set.size = attribute->be32().value_or(0);
    if (attribute->type != NFTA_SET_DESC_CONCAT) continue;
    AttributeReader fields(attribute->payload);
    while (const auto field = fields.next()) {
      AttributeReader lengths(field->payload);
      while (const auto length = lengths.next()) {
        if (length->type == NFTA_SET_FIELD_LEN) set.field_lengths.push_back(length->be32().value_or(0));
      }
      if (lengths.malformed()) return false;
    }
    if (fields.malformed()) return false;
  }
  return !reader.malformed();
}

// False when an attribute has not the shape it must have.
bool read_set_attribute(const Attribute& attribute, Listed<Set>& to) {
  Set& set = to.object;
  switch (attribute.type) {
    case NFTA_SET_TABLE:
      to.table = attribute.string();
      return true;
    case NFTA_SET_NAME:
      set.name = attribute.string();
      return true;
    case NFTA_SET_FLAGS:
      set.flags = attribute.be32().value_or(0);
      return attribute.payload.size() == 4;
    case NFTA_SET_KEY_TYPE:
      set.key_type = attribute.be32().value_or(0);
      return attribute.payload.size() == 4;
    case NFTA_SET_KEY_LEN:
      set.key_length = attribute.be32().value_or(0);
      return attribute.payload.size() == 4;
    case NFTA_SET_DATA_TYPE:
      set.data_type = attribute.be32().value_or(0);
      return attribute.payload.size() == 4;
    case NFTA_SET_DATA_LEN:
      set.data_length = attribute.be32().value_or(0);
      return attribute.payload.size() == 4;
    case NFTA_SET_TIMEOUT:
      set.timeout_ms = attribute.be64().value_or(0);
      return attribute.payload.size() == 8;
    case NFTA_SET_DESC:
      return read_description(attribute.payload, set);
    case NFTA_SET_EXPR:
    case NFTA_SET_EXPRESSIONS:
      set.element_expressions = Bytes(attribute.payload.begin(), attribute.payload.end());
      return true;
    default:
      return true;
  }
}

// NFTA_DATA_VALUE in a nest.
std::optional<ByteView> read_value(const Attribute& attribute) {
  AttributeReader reader(attribute.payload);
  const auto value = reader.next();
  if (!value || value->type != NFTA_DATA_VALUE) return std::nullopt;
  return value->payload;
}

bool read_content(const Attribute& attribute, ListedElement& to) {
  AttributeReader reader(attribute.payload);
  const auto content = reader.next();
  if (!content) return false;
  if (content->type == NFTA_DATA_VALUE) {
    to.data = content->payload;
    return true;
  }
  if (content->type != NFTA_DATA_VERDICT) return false;
  to.verdict = read_verdict(content->payload);
  return to.verdict.has_value();
}

// False when what the element keeps is malformed. Anything but a counter is ignored here.
bool read_kept(ByteView attributes, ListedElement& to) {
  const auto kept = read_expression(attributes);
  if (kept.ok() && kept.value().name == "counter") to.packets = kept.value().number(NFTA_COUNTER_PACKETS);
  return kept.ok();
}

std::optional<ListedElement> read_element(ByteView attributes) {
  ListedElement element;
  bool has_key = false;
  AttributeReader reader(attributes);
  while (const auto attribute = reader.next()) {
    switch (attribute->type) {
      case NFTA_SET_ELEM_KEY: {
        const auto key = read_value(*attribute);
        if (!key) return std::nullopt;
        element.key = *key;
        has_key = true;
        break;
      }
      case NFTA_SET_ELEM_KEY_END:
        element.key_end = read_value(*attribute);
        if (!element.key_end) return std::nullopt;
        break;
      case NFTA_SET_ELEM_DATA:
        if (!read_content(*attribute, element)) return std::nullopt;
        break;
      case NFTA_SET_ELEM_FLAGS: {
        const std::uint32_t flags = attribute->be32().value_or(0);
        element.interval_end = (flags & NFT_SET_ELEM_INTERVAL_END) != 0;
        element.catch_all = (flags & NFT_SET_ELEM_CATCHALL) != 0;
        break;
      }
      case NFTA_SET_ELEM_USERDATA:
        element.comment = read_comment(attribute->payload);
        break;
      case NFTA_SET_ELEM_EXPR:
        if (!read_kept(attribute->payload, element)) return std::nullopt;
        break;
      default:
        break;
    }
  }
  if (reader.malformed() || (!has_key && !element.catch_all)) return std::nullopt;
  return element;
}

bool read_timeout_data(ByteView attributes, Timeout& to) {
  ByteView values;
  AttributeReader reader(attributes);
  while (const auto attribute = reader.next()) {
    if (attribute->type == NFTA_CT_TIMEOUT_L4PROTO) to.protocol = attribute->u8().value_or(0);
    if (attribute->type == NFTA_CT_TIMEOUT_DATA) values = attribute->payload;
  }
  AttributeReader states(values);
  while (const auto state = states.next()) {
    if (state->type >= 1 && state->type <= kMostTimeoutStates) to.seconds[state->type - std::size_t{1}] = state->be32();
  }
  return !reader.malformed() && !states.malformed() && to.protocol != 0;
}

}  // namespace

netlink::Result<Listed<Chain>> read_chain(const netlink::Message& message) {
  Listed<Chain> listed;
  std::optional<std::uint32_t> policy;
  std::string type;
  AttributeReader reader(message.attributes());
  while (const auto attribute = reader.next()) {
    if (attribute->type == NFTA_CHAIN_TABLE) listed.table = attribute->string();
    if (attribute->type == NFTA_CHAIN_NAME) listed.object.name = attribute->string();
    if (attribute->type == NFTA_CHAIN_TYPE) type = attribute->string();
    if (attribute->type == NFTA_CHAIN_POLICY) policy = attribute->be32();
    if (attribute->type == NFTA_CHAIN_USERDATA) listed.object.comment = read_comment(attribute->payload);
    if (attribute->type == NFTA_CHAIN_HOOK) {
      listed.object.hook = read_hook(*attribute);
      if (!listed.object.hook) return decode_error("a chain's hook is malformed");
    }
  }
  if (reader.malformed() || listed.table.empty() || listed.object.name.empty()) {
    return decode_error("a chain is malformed");
  }
  if (listed.object.hook) {
    listed.object.hook->hook = hook_in(message.family(), listed.object.hook->hook);
    listed.object.hook->type = type;
    listed.object.hook->policy = policy.value_or(NF_ACCEPT);
  }
  return listed;
}

netlink::Result<Listed<Rule>> read_rule(const netlink::Message& message) {
  Listed<Rule> listed;
  AttributeReader reader(message.attributes());
  while (const auto attribute = reader.next()) {
    if (attribute->type == NFTA_RULE_TABLE) listed.table = attribute->string();
    if (attribute->type == NFTA_RULE_CHAIN) listed.object.chain = attribute->string();
    if (attribute->type == NFTA_RULE_HANDLE) listed.object.handle = attribute->be64();
    if (attribute->type == NFTA_RULE_USERDATA) listed.object.comment = read_comment(attribute->payload);
    if (attribute->type == NFTA_RULE_EXPRESSIONS) {
      auto expressions = read_expressions(attribute->payload);
      if (!expressions.ok()) return expressions.error();
      listed.object.expressions = std::move(expressions.value());
    }
  }
  if (reader.malformed() || listed.table.empty() || listed.object.chain.empty()) {
    return decode_error("a rule is malformed");
  }
  return listed;
}

netlink::Result<Listed<Set>> read_set(const netlink::Message& message) {
  Listed<Set> listed;
  AttributeReader reader(message.attributes());
  while (const auto attribute = reader.next()) {
    if (!read_set_attribute(*attribute, listed)) return decode_error("a set's attribute is malformed");
  }
  if (reader.malformed() || listed.table.empty() || listed.object.name.empty()) {
    return decode_error("a set is malformed");
  }
  // The kernel gives the size of its own verdict structure.
  if (listed.object.is_verdict_map()) listed.object.data_length = 0;
  return listed;
}

netlink::Result<std::optional<Listed<ObjectListing>>> read_object(const netlink::Message& message) {
  Listed<ObjectListing> listed;
  std::optional<std::uint32_t> type;
  ByteView data;
  AttributeReader reader(message.attributes());
  while (const auto attribute = reader.next()) {
    if (attribute->type == NFTA_OBJ_TABLE) listed.table = attribute->string();
    if (attribute->type == NFTA_OBJ_NAME) listed.object.name = attribute->string();
    if (attribute->type == NFTA_OBJ_TYPE) type = attribute->be32();
    if (attribute->type == NFTA_OBJ_DATA) data = attribute->payload;
  }
  if (reader.malformed() || listed.table.empty() || listed.object.name.empty() || !type) {
    return decode_error("an object is malformed");
  }
  if (*type != NFT_OBJECT_CT_TIMEOUT && *type != NFT_OBJECT_COUNTER) return std::optional<Listed<ObjectListing>>();
  listed.object.declaration = "counter";
  if (*type == NFT_OBJECT_CT_TIMEOUT) {
    Timeout timeout;
    if (!read_timeout_data(data, timeout)) return decode_error("a ct timeout is malformed");
    listed.object.declaration = timeout_text(timeout);
  }
  return std::optional(std::move(listed));
}

netlink::Status read_elements(const netlink::Message& message,
                              const std::function<netlink::Status(ListedElement&&)>& take) {
  if (!message.family()) return decode_error("a message of elements is truncated");
  AttributeReader reader(message.attributes());
  while (const auto attribute = reader.next()) {
    if (attribute->type != NFTA_SET_ELEM_LIST_ELEMENTS) continue;
    AttributeReader list(attribute->payload);
    while (const auto each = list.next()) {
      auto element = read_element(each->payload);
      if (!element) return decode_error("a set's element is malformed");
      if (auto taken = take(*std::move(element)); !taken.ok()) return taken;
    }
    if (list.malformed()) return decode_error("a list of elements is malformed");
  }
  if (reader.malformed()) return decode_error("a message of elements is malformed");
  return netlink::Done{};
}

}  // namespace pointsman::nftables
