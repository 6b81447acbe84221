#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include "nftables/decode.h"
#include "nftables/element_columns.h"
#include "nftables/transaction.h"
#include "nftables/user_data.h"
#include "test/check.h"
#include "test/samples.h"

namespace {

using namespace pointsman;
using namespace pointsman::nftables;

constexpr std::uint16_t type_of(std::uint8_t message) {
  return static_cast<std::uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | message);
}

Bytes encode(Operation operation) {
  const Transaction transaction{Family::kIp, "t", {std::move(operation)}};
  const auto encoded = EncodedTransaction::encode(transaction);
  if (!encoded.ok()) return {};
  return Bytes(encoded.value().bytes().begin(), encoded.value().bytes().end());
}

// The first message of the type, in a form a listing has: the same message.
netlink::Message find(const Bytes& batch, std::uint8_t message) {
  netlink::MessageReader reader(batch);
  while (const auto each = reader.next()) {
    if (each->type == type_of(message)) return *each;
  }
  return {};
}

Elements frontends(std::size_t count) {
  Elements elements;
  elements.set = "services";
  elements.count = count;
  elements.key_length = 12;
  elements.goto_chains.emplace();
  elements.comments.emplace();
  for (std::size_t index = 0; index < count; ++index) {
    Bytes key{10, 96, 0, 0, 6, 0, 0, 0, 0, 80, 0, 0};
    netlink::store_be16(key.data() + 2, static_cast<std::uint16_t>(index));
    elements.keys.insert(elements.keys.end(), key.begin(), key.end());
    elements.goto_chains->push_back("chain-" + std::to_string(index % 7));
    elements.comments->push_back(index % 2 == 0 ? std::optional("comment " + std::to_string(index)) : std::nullopt);
  }
  return elements;
}

Set service_map() {
  Set set;
  set.name = "services";
  set.flags = NFT_SET_MAP;
  set.key_type = 7 << 12 | 12 << 6 | 13;
  set.key_length = 12;
  set.data_type = static_cast<std::uint32_t>(NFT_DATA_VERDICT);
  return set;
}

}  // namespace

TEST(rules_come_back_from_their_bytes) {
  for (const std::string& rule : samples::rules()) {
    const json::Value commands = samples::commands(samples::rule(rule));
    const Bytes batch = encode(Commands{commands});
    const auto read = read_rule(find(batch, NFT_MSG_NEWRULE));
    const auto compiled = compile_listing(Family::kIp, "t", commands);
    CHECK(read.ok());
    CHECK_EQUAL(read.value().table, "t");
    CHECK_EQUAL(read.value().object.chain, "x");
    CHECK_EQUAL(rule_text(read.value().object), compiled.value().chains.front().rules.front());
  }
}

TEST(objects_come_back_from_their_bytes) {
  const json::Value commands = samples::commands(samples::objects());
  const Bytes batch = encode(Commands{commands});
  const auto compiled = compile_commands(Family::kIp, "t", commands, [](auto) { return nullptr; });
  std::vector<std::string> expected;
  for (const Command& command : compiled.value()) {
    if (command.verb == Verb::kDelete || command.verb == Verb::kFlush) continue;
    if (const auto* set = std::get_if<Set>(&command.object)) expected.push_back(set->name + " " + declaration_text(*set));
    if (const auto* chain = std::get_if<Chain>(&command.object)) {
      expected.push_back(chain->name + " " + (chain->hook ? hook_text(*chain->hook) : "") + chain->comment.value_or(""));
    }
  }
  std::vector<std::string> found;
  netlink::MessageReader reader(batch);
  while (const auto message = reader.next()) {
    if (message->type == type_of(NFT_MSG_NEWSET)) {
      const auto set = read_set(*message);
      found.push_back(set.value().object.name + " " + declaration_text(set.value().object));
    }
    if (message->type == type_of(NFT_MSG_NEWCHAIN)) {
      const auto read = read_chain(*message);
      const Chain& chain = read.value().object;
      found.push_back(chain.name + " " + (chain.hook ? hook_text(*chain.hook) : "") + chain.comment.value_or(""));
    }
  }
  CHECK(found == expected);
  CHECK_EQUAL(found.size(), 7U);
}

TEST(elements_come_back_in_any_number_of_messages) {
  for (const std::size_t count : {0U, 1U, 2U, 3000U}) {
    const Elements elements = frontends(count);
    const Bytes batch = encode(elements);
    const Set set = service_map();
    ColumnBuilder builder(set);
    std::size_t messages = 0;
    netlink::MessageReader reader(batch);
    while (const auto message = reader.next()) {
      if (message->type != type_of(NFT_MSG_NEWSETELEM)) continue;
      ++messages;
      const auto add = [&](ListedElement&& element) { return builder.add(std::move(element)); };
      CHECK(read_elements(*message, add).ok());
    }
    CHECK(!reader.malformed());
    const ElementColumns columns = builder.take();
    CHECK_EQUAL(columns.count, count);
    CHECK_EQUAL(messages > 1, count == 3000);
    CHECK(columns.keys == elements.keys);
    if (count == 0) continue;
    CHECK(columns.comments == *elements.comments);
    for (std::size_t index = 0; index < count; ++index) {
      CHECK_EQUAL(columns.verdicts->texts[columns.verdicts->indexes[index]], "goto " + (*elements.goto_chains)[index]);
    }
  }
}

TEST(the_buffer_of_many_elements_is_made_once) {
  Elements verdicts = frontends(3000);
  Elements endpoints = frontends(3000);
  endpoints.goto_chains.reset();
  endpoints.comments.reset();
  endpoints.key_ends = endpoints.keys;
  endpoints.data_length = 6;
  endpoints.data = Bytes(3000 * endpoints.data_length);
  // The messages that begin and end a batch.
  constexpr std::size_t kFrame = 2 * NLMSG_LENGTH(sizeof(nfgenmsg));
  for (const Elements& elements : {verdicts, endpoints}) {
    const std::size_t taken = encode(elements).size() - kFrame;
    const std::size_t expected = elements_size(elements);
    CHECK(taken <= expected);
    CHECK(expected < taken + taken / 20);
  }
}

TEST(a_deletion_without_elements_is_no_message) {
  // The kernel empties a set when a deletion names none.
  Elements nothing = frontends(0);
  nothing.deletion = true;
  const Transaction transaction{Family::kIp, "t", {std::move(nothing)}};
  CHECK_EQUAL(EncodedTransaction::encode(transaction).value().messages(), 0U);
}

TEST(failures_find_their_element) {
  const Transaction transaction{
      Family::kIp,
      "t",
      {Commands{samples::commands(R"({"add":{"map":{"family":"ip","table":"t","name":"services",)"
                                      R"("type":["ipv4_addr","inet_proto","inet_service"],"map":"verdict"}}})")},
       frontends(3000)}};
  const auto encoded = EncodedTransaction::encode(transaction);
  const EncodedTransaction& batch = encoded.value();
  const Bytes bytes(batch.bytes().begin(), batch.bytes().end());
  netlink::MessageReader reader(bytes);
  std::size_t element = 0;
  while (const auto message = reader.next()) {
    if (message->type != type_of(NFT_MSG_NEWSETELEM)) continue;
    const std::uint8_t* const start = message->payload.data() - NLMSG_HDRLEN;
    netlink::AttributeReader attributes(message->attributes());
    while (const auto attribute = attributes.next()) {
      if (attribute->type != NFTA_SET_ELEM_LIST_ELEMENTS) continue;
      netlink::AttributeReader list(attribute->payload);
      while (const auto each = list.next()) {
        netlink::Error error = netlink::system_error(17, "refused");
        error.sequence = message->sequence;
        error.offset = static_cast<std::uint32_t>(each->payload.data() - start) - NLA_HDRLEN;
        const Failure failure = batch.explain(error, nullptr);
        CHECK_EQUAL(*failure.operation, 1U);
        CHECK_EQUAL(*failure.element, element);
        ++element;
      }
    }
  }
  CHECK_EQUAL(element, 3000U);
  netlink::Error error = netlink::system_error(17, "refused");
  error.sequence = 2;
  error.offset = 1;
  CHECK(!batch.explain(error, nullptr).element);
  CHECK_EQUAL(*batch.explain(error, nullptr).object, "add elements to services");
  error.sequence = 1;
  CHECK_EQUAL(*batch.explain(error, nullptr).object, "add map services");
  error.sequence = 0;
  CHECK(!batch.explain(error, nullptr).operation);
  error.sequence = 99999;
  CHECK(!batch.explain(error, nullptr).operation);
}

TEST(element_text_uses_the_declaration) {
  Elements one = frontends(1);
  const Transaction transaction{
      Family::kIp,
      "t",
      {Commands{samples::commands(R"({"add":{"map":{"family":"ip","table":"t","name":"services",)"
                                      R"("type":["ipv4_addr","inet_proto","inet_service"],"map":"verdict"}}})")},
       one}};
  netlink::Error error = netlink::system_error(17, "refused");
  error.sequence = 2;
  const auto encoded = EncodedTransaction::encode(transaction);
  CHECK_EQUAL(*encoded.value().explain(error, nullptr).object, "add element services 10.96.0.0 . tcp . 80");
  const Transaction undeclared{Family::kIp, "t", {one}};
  const auto alone = EncodedTransaction::encode(undeclared);
  error.sequence = 1;
  CHECK_EQUAL(*alone.value().explain(error, nullptr).object, "add element services 0x0a6000000600000000500000");
}

TEST(unknown_expressions_show) {
  netlink::MessageWriter writer;
  writer.begin_message(type_of(NFT_MSG_NEWRULE), 0, 1, 2);
  writer.put_string(NFTA_RULE_TABLE, "t");
  writer.put_string(NFTA_RULE_CHAIN, "x");
  writer.nest(NFTA_RULE_EXPRESSIONS, [&] {
    writer.nest(NFTA_LIST_ELEM, [&] {
      writer.put_string(NFTA_EXPR_NAME, "quota");
      writer.nest(NFTA_EXPR_DATA, [&] { writer.put_be64(1, 5); });
    });
    // A known expression with an attribute beyond the schema is unknown as a whole.
    writer.nest(NFTA_LIST_ELEM, [&] {
      writer.put_string(NFTA_EXPR_NAME, "masq");
      writer.nest(NFTA_EXPR_DATA, [&] { writer.put_be32(99, 1); });
    });
    writer.nest(NFTA_LIST_ELEM, [&] { writer.put_string(NFTA_EXPR_NAME, "odd name"); });
  });
  writer.end_message();
  netlink::MessageReader reader(writer.bytes());
  const auto rule = read_rule(*reader.next());
  CHECK_EQUAL(rule_text(rule.value().object),
              "[unknown(quota) 0x0c0001000000000000000005] [unknown(masq) 0x0800630000000001] "
              "[unknown(name(0x6f6464206e616d65)) 0x]");
}

TEST(kernel_defaults_do_not_show) {
  const auto text = [](const char* name, auto&& attributes) {
    netlink::MessageWriter writer;
    writer.begin_message(0, 0, 0, 0);
    const std::size_t start = writer.size();
    writer.put_string(NFTA_EXPR_NAME, name);
    writer.nest(NFTA_EXPR_DATA, [&] { attributes(writer); });
    return expression_text(read_expression(writer.bytes().subspan(start)).value());
  };
  CHECK_EQUAL(text("masq", [](auto& writer) { writer.put_be32(NFTA_MASQ_FLAGS, 0); }), "[masq]");
  CHECK_EQUAL(text("masq", [](auto& writer) { writer.put_be32(NFTA_MASQ_FLAGS, 16); }), "[masq flags 16]");
  CHECK_EQUAL(text("nat",
                   [](auto& writer) {
                     writer.put_be32(NFTA_NAT_REG_ADDR_MIN, 1);
                     writer.put_be32(NFTA_NAT_REG_ADDR_MAX, 1);
                     writer.put_be32(NFTA_NAT_FLAGS, 3);
                   }),
              "[nat address 1]");
  CHECK_EQUAL(text("nat",
                   [](auto& writer) {
                     writer.put_be32(NFTA_NAT_REG_ADDR_MIN, 1);
                     writer.put_be32(NFTA_NAT_REG_ADDR_MAX, 2);
                   }),
              "[nat address 1 address-max 2]");
  CHECK_EQUAL(text("counter", [](auto& writer) { writer.put_be64(NFTA_COUNTER_BYTES, 7); }), "[counter]");
  const auto nested = [](const char* name, auto&& inner) {
    return [name, inner](netlink::MessageWriter& writer) {
      writer.put_string(NFTA_DYNSET_SET_NAME, "seen");
      writer.nest(NFTA_DYNSET_EXPR, [&] {
        writer.put_string(NFTA_EXPR_NAME, name);
        writer.nest(NFTA_EXPR_DATA, [&] { inner(writer); });
      });
    };
  };
  const auto counter = nested("counter", [](auto& writer) { writer.put_be64(NFTA_COUNTER_PACKETS, 7); });
  CHECK_EQUAL(text("dynset", counter), "[dynset set seen with [counter]]");
  CHECK_EQUAL(text("dynset", nested("quota", [](auto&) {})), "[dynset set seen with [unknown(quota) 0x]]");
  CHECK(text("dynset", nested("dynset", counter)).starts_with("[unknown(dynset) 0x"));
}

TEST(elements_say_what_they_counted) {
  Set set;
  set.key_type = 12;
  set.key_length = 1;
  ColumnBuilder builder(set);
  for (const std::uint8_t key : {1, 2, 3}) {
    netlink::MessageWriter writer;
    writer.begin_message(type_of(NFT_MSG_NEWSETELEM), 0, 0, 2);
    writer.nest(NFTA_SET_ELEM_LIST_ELEMENTS, [&] {
      writer.nest(NFTA_LIST_ELEM, [&] {
        writer.nest(NFTA_SET_ELEM_KEY, [&] { writer.put_bytes(NFTA_DATA_VALUE, Bytes{key}); });
        if (key != 2) return;
        writer.nest(NFTA_SET_ELEM_EXPR, [&] {
          writer.put_string(NFTA_EXPR_NAME, "counter");
          writer.nest(NFTA_EXPR_DATA, [&] { writer.put_be64(NFTA_COUNTER_PACKETS, std::uint64_t{1} << 40); });
        });
      });
    });
    writer.end_message();
    const Bytes message = writer.take();
    netlink::MessageReader reader(message);
    const auto add = [&](ListedElement&& element) { return builder.add(std::move(element)); };
    CHECK(read_elements(*reader.next(), add).ok());
  }
  CHECK(builder.take().packets == (std::vector<double>{0, 1099511627776.0, 0}));
  ColumnBuilder silent(set);
  CHECK(silent.take().packets.empty());
}

TEST(plain_intervals_are_paired) {
  Set set;
  set.flags = NFT_SET_INTERVAL;
  set.key_type = 7;
  set.key_length = 4;
  ColumnBuilder builder(set);
  const auto add = [&](const Bytes& key, bool end) {
    ListedElement element;
    element.key = key;
    element.interval_end = end;
    CHECK(builder.add(element).ok());
  };
  add({192, 168, 1, 0}, true);
  add({240, 0, 0, 0}, false);
  add({192, 168, 0, 0}, false);
  add({0, 0, 0, 0}, true);
  const ElementColumns columns = builder.take();
  CHECK(columns.keys == (Bytes{192, 168, 0, 0, 240, 0, 0, 0}));
  CHECK(*columns.key_ends == (Bytes{192, 168, 0, 255, 255, 255, 255, 255}));
}

TEST(elements_that_do_not_fit_their_set_are_decode_errors) {
  const Set set = service_map();
  ColumnBuilder builder(set);
  const Bytes bytes(12);
  const ByteView key = bytes;
  ListedElement element;
  element.key = key.first(11);
  CHECK(!builder.add(element).ok());
  element.key = key;
  CHECK(!builder.add(element).ok());
  element.verdict = Verdict{NFT_RETURN, ""};
  element.key_end = key.first(3);
  CHECK(!builder.add(element).ok());
  element.key_end.reset();
  CHECK(builder.add(element).ok());
}

TEST(truncated_listings_are_decode_errors_or_shorter) {
  const json::Value commands = samples::commands(samples::objects() + "," + samples::rule(samples::rules()[9]));
  for (const Bytes& batch : {encode(Commands{commands}), encode(frontends(3))}) {
    netlink::MessageReader reader(batch);
    while (const auto whole = reader.next()) {
      for (std::size_t length = 0; length < whole->payload.size(); ++length) {
        netlink::Message cut = *whole;
        cut.payload = whole->payload.first(length);
        if (whole->type == type_of(NFT_MSG_NEWRULE)) static_cast<void>(read_rule(cut).ok());
        if (whole->type == type_of(NFT_MSG_NEWCHAIN)) static_cast<void>(read_chain(cut).ok());
        if (whole->type == type_of(NFT_MSG_NEWSET)) static_cast<void>(read_set(cut).ok());
        if (whole->type != type_of(NFT_MSG_NEWSETELEM)) continue;
        // Cut before the list there are no elements; cut within it the list does not fit its length.
        std::size_t taken = 0;
        const auto read = read_elements(cut, [&](ListedElement&&) -> netlink::Status {
          ++taken;
          return netlink::Done{};
        });
        CHECK_EQUAL(taken, 0U);
        CHECK(length >= sizeof(nfgenmsg) || !read.ok());
      }
    }
  }
}

TEST(comments_are_read_from_user_data) {
  CHECK_EQUAL(*read_comment(comment_user_data("hello")), "hello");
  CHECK_EQUAL(*read_comment(Bytes{9, 1, 7, 0, 3, 'h', 'i', 0}), "hi");
  CHECK(!read_comment(Bytes{0}));
  CHECK(!read_comment(Bytes{0, 200, 'x'}));
  CHECK(!read_comment(Bytes{0, 0}));
}
