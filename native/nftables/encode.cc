#include "nftables/encode.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include "nftables/user_data.h"

namespace pointsman::nftables {

namespace {

using netlink::Batch;
using netlink::MessageWriter;

// An attribute holds less than 64 KiB; half of that leaves room for the longest element.
constexpr std::size_t kElementsNest = 32 * 1024;
// Headers, the names of a table and a set (NFT_NAME_MAXLEN each), and the nest.
constexpr std::size_t kMessageOverhead = 600;

std::uint16_t creation_flags(Verb verb) {
  if (verb == Verb::kCreate) return NLM_F_CREATE | NLM_F_EXCL;
  if (verb == Verb::kAdd || verb == Verb::kInsert) return NLM_F_CREATE;
  return 0;
}

bool creates(Verb verb) { return verb != Verb::kDelete && verb != Verb::kFlush; }

void put_user_data(MessageWriter& writer, std::uint16_t type, const Bytes& user_data) {
  if (!user_data.empty()) writer.put_bytes(type, user_data);
}

class CommandWriter {
 public:
  CommandWriter(Batch& batch, Family family, std::string_view table, Verb verb, std::uint32_t set_id)
      : batch_(batch), writer_(batch.writer()), family_(static_cast<std::uint8_t>(family)), table_(table), verb_(verb), set_id_(set_id) {}

  void operator()(const Table& table) {
    if (verb_ == Verb::kFlush) {
      begin(NFT_MSG_DELRULE, NFTA_RULE_TABLE);
      return batch_.end();
    }
    begin(creates(verb_) ? NFT_MSG_NEWTABLE : NFT_MSG_DELTABLE, NFTA_TABLE_NAME);
    if (creates(verb_)) {
      writer_.put_be32(NFTA_TABLE_FLAGS, table.flags);
      put_user_data(writer_, NFTA_TABLE_USERDATA, comment_user_data(table.comment));
    }
    batch_.end();
  }

  void operator()(const Chain& chain) {
    if (verb_ == Verb::kFlush) {
      begin(NFT_MSG_DELRULE, NFTA_RULE_TABLE);
      writer_.put_string(NFTA_RULE_CHAIN, chain.name);
      return batch_.end();
    }
    begin(creates(verb_) ? NFT_MSG_NEWCHAIN : NFT_MSG_DELCHAIN, NFTA_CHAIN_TABLE);
    writer_.put_string(NFTA_CHAIN_NAME, chain.name);
    if (creates(verb_) && chain.hook) write_hook(*chain.hook);
    if (creates(verb_)) put_user_data(writer_, NFTA_CHAIN_USERDATA, comment_user_data(chain.comment));
    batch_.end();
  }

  void operator()(const Rule& rule) {
    const std::uint16_t place = verb_ == Verb::kInsert || !creates(verb_) ? 0 : NLM_F_APPEND;
    begin(creates(verb_) ? NFT_MSG_NEWRULE : NFT_MSG_DELRULE, NFTA_RULE_TABLE, place);
    writer_.put_string(NFTA_RULE_CHAIN, rule.chain);
    if (rule.handle) writer_.put_be64(NFTA_RULE_HANDLE, *rule.handle);
    if (creates(verb_)) {
      writer_.nest(NFTA_RULE_EXPRESSIONS, [&] {
        for (const Expression& expression : rule.expressions) write_expression(writer_, expression);
      });
      put_user_data(writer_, NFTA_RULE_USERDATA, comment_user_data(rule.comment));
    }
    batch_.end();
  }

  void operator()(const Set& set) {
    if (verb_ == Verb::kFlush) {
      begin(NFT_MSG_DELSETELEM, NFTA_SET_ELEM_LIST_TABLE);
      writer_.put_string(NFTA_SET_ELEM_LIST_SET, set.name);
      return batch_.end();
    }
    begin(creates(verb_) ? NFT_MSG_NEWSET : NFT_MSG_DELSET, NFTA_SET_TABLE);
    writer_.put_string(NFTA_SET_NAME, set.name);
    if (creates(verb_)) write_declaration(set);
    batch_.end();
  }

  void operator()(const Timeout& timeout) {
    begin(creates(verb_) ? NFT_MSG_NEWOBJ : NFT_MSG_DELOBJ, NFTA_OBJ_TABLE);
    writer_.put_string(NFTA_OBJ_NAME, timeout.name);
    writer_.put_be32(NFTA_OBJ_TYPE, NFT_OBJECT_CT_TIMEOUT);
    if (creates(verb_)) write_timeout(timeout);
    batch_.end();
  }

  void operator()(const Counter& counter) {
    begin(NFT_MSG_DELOBJ, NFTA_OBJ_TABLE);
    writer_.put_string(NFTA_OBJ_NAME, counter.name);
    writer_.put_be32(NFTA_OBJ_TYPE, NFT_OBJECT_COUNTER);
    batch_.end();
  }

 private:
  void begin(std::uint8_t message, std::uint16_t table_attribute, std::uint16_t more_flags = 0) {
    batch_.begin(message, static_cast<std::uint16_t>(creation_flags(verb_) | more_flags), family_);
    writer_.put_string(table_attribute, table_);
  }

  void write_hook(const BaseHook& hook) {
    writer_.put_string(NFTA_CHAIN_TYPE, hook.type);
    writer_.put_be32(NFTA_CHAIN_POLICY, hook.policy);
    writer_.nest(NFTA_CHAIN_HOOK, [&] {
      writer_.put_be32(NFTA_HOOK_HOOKNUM, hook.hook);
      writer_.put_be32(NFTA_HOOK_PRIORITY, static_cast<std::uint32_t>(hook.priority));
    });
  }

  void write_timeout(const Timeout& timeout) {
    writer_.nest(NFTA_OBJ_DATA, [&] {
      writer_.put_be16(NFTA_CT_TIMEOUT_L3PROTO, family_);
      writer_.put_u8(NFTA_CT_TIMEOUT_L4PROTO, timeout.protocol);
      writer_.nest(NFTA_CT_TIMEOUT_DATA, [&] {
        for (const TimeoutState& state : timeout_protocol(timeout.protocol)->states) {
          writer_.put_be32(state.attribute, timeout.seconds[state.attribute - std::size_t{1}].value_or(0));
        }
      });
    });
  }

  void write_declaration(const Set& set) {
    writer_.put_be32(NFTA_SET_FLAGS, set.flags);
    writer_.put_be32(NFTA_SET_KEY_TYPE, set.key_type);
    writer_.put_be32(NFTA_SET_KEY_LEN, set.key_length);
    if (set.is_map()) {
      writer_.put_be32(NFTA_SET_DATA_TYPE, set.data_type);
      writer_.put_be32(NFTA_SET_DATA_LEN, set.data_length);
    }
    writer_.put_be32(NFTA_SET_ID, set_id_);
    if (set.size != 0 || !set.field_lengths.empty()) {
      writer_.nest(NFTA_SET_DESC, [&] { write_description(set); });
    }
    if (set.timeout_ms != 0) writer_.put_be64(NFTA_SET_TIMEOUT, set.timeout_ms);
    put_user_data(writer_, NFTA_SET_USERDATA, set_user_data(set));
  }

  void write_description(const Set& set) {
    if (set.size != 0) writer_.put_be32(NFTA_SET_DESC_SIZE, set.size);
    if (set.field_lengths.empty()) return;
    writer_.nest(NFTA_SET_DESC_CONCAT, [&] {
      for (const std::uint32_t length : set.field_lengths) {
        writer_.nest(NFTA_LIST_ELEM, [&] { writer_.put_be32(NFTA_SET_FIELD_LEN, length); });
      }
    });
  }

  Batch& batch_;
  MessageWriter& writer_;
  std::uint8_t family_;
  std::string_view table_;
  Verb verb_;
  std::uint32_t set_id_;
};

void write_key(MessageWriter& writer, std::uint16_t type, const Bytes& column, std::size_t length, std::size_t index) {
  writer.nest(type, [&] { writer.put_bytes(NFTA_DATA_VALUE, ByteView(column).subspan(index * length, length)); });
}

void write_element(MessageWriter& writer, const Elements& elements, std::size_t index) {
  writer.nest(NFTA_LIST_ELEM, [&] {
    write_key(writer, NFTA_SET_ELEM_KEY, elements.keys, elements.key_length, index);
    if (elements.key_ends) {
      write_key(writer, NFTA_SET_ELEM_KEY_END, *elements.key_ends, elements.key_length, index);
    }
    if (elements.data) write_key(writer, NFTA_SET_ELEM_DATA, *elements.data, elements.data_length, index);
    if (elements.goto_chains) {
      writer.nest(NFTA_SET_ELEM_DATA, [&] {
        writer.nest(NFTA_DATA_VERDICT, [&] { write_verdict(writer, Verdict{NFT_GOTO, (*elements.goto_chains)[index]}); });
      });
    }
    if (elements.comments && (*elements.comments)[index]) {
      writer.put_bytes(NFTA_SET_ELEM_USERDATA, comment_user_data((*elements.comments)[index]));
    }
  });
}

}  // namespace

void write_command(Batch& batch, Family family, std::string_view table, const Command& command, std::uint32_t set_id) {
  std::visit(CommandWriter(batch, family, table, command.verb, set_id), command.object);
}

std::size_t elements_size(const Elements& elements) {
  // Each column is a nest around an attribute, in one nest for the element.
  const auto column = [](std::size_t length) { return 2 * std::size_t{NLA_HDRLEN} + NLA_ALIGN(length); };
  std::size_t element = NLA_HDRLEN + column(elements.key_length);
  if (elements.key_ends) element += column(elements.key_length);
  if (elements.data) element += column(elements.data_length);
  std::size_t size = elements.count * element;
  if (elements.goto_chains) {
    // Two nests, the code, and the chain's name with its end.
    for (const std::string& chain : *elements.goto_chains) size += 3 * std::size_t{NLA_HDRLEN} + column(chain.size() + 1);
  }
  if (elements.comments) {
    for (const auto& comment : *elements.comments) size += comment ? column(comment->size()) : 0;
  }
  return size + (size / kElementsNest + 1) * kMessageOverhead;
}

std::size_t write_elements(Batch& batch, Family family, std::string_view table, const Elements& elements,
                           std::size_t first) {
  const std::uint8_t message = elements.deletion ? NFT_MSG_DELSETELEM : NFT_MSG_NEWSETELEM;
  batch.begin(message, elements.deletion ? 0 : NLM_F_CREATE, static_cast<std::uint8_t>(family));
  MessageWriter& writer = batch.writer();
  writer.put_string(NFTA_SET_ELEM_LIST_TABLE, table);
  writer.put_string(NFTA_SET_ELEM_LIST_SET, elements.set);
  const std::size_t nest = writer.open_nest(NFTA_SET_ELEM_LIST_ELEMENTS);
  std::size_t next = first;
  while (next < elements.count && writer.size() - nest < kElementsNest) write_element(writer, elements, next++);
  writer.close_nest(nest);
  batch.end();
  return next - first;
}

std::optional<std::size_t> element_at(ByteView message, std::uint32_t offset) {
  constexpr std::size_t kHeader = NLMSG_HDRLEN + sizeof(nfgenmsg);
  if (message.size() < kHeader) return std::nullopt;
  netlink::AttributeReader attributes(message.subspan(kHeader));
  while (const auto attribute = attributes.next()) {
    if (attribute->type != NFTA_SET_ELEM_LIST_ELEMENTS) continue;
    netlink::AttributeReader list(attribute->payload);
    for (std::size_t index = 0; const auto element = list.next(); ++index) {
      // The kernel points at the element's own header or at an attribute inside it.
      const auto start = static_cast<std::size_t>(element->payload.data() - message.data()) - NLA_HDRLEN;
      if (offset >= start && offset < start + NLA_HDRLEN + element->payload.size()) return index;
    }
  }
  return std::nullopt;
}

}  // namespace pointsman::nftables
