#include "nftables/compile.h"

#include <linux/netfilter/nf_tables.h>

#include "nftables/listing.h"
#include "test/check.h"
#include "test/samples.h"

namespace {

using namespace pointsman::nftables;

std::string complaint(const std::string& commands) {
  const auto compiled = compile_commands(Family::kIp, "t", samples::commands(commands), [](auto) { return nullptr; });
  return compiled.ok() ? "" : compiled.error().message;
}

std::string rule_complaint(const std::string& statement) { return complaint(samples::rule("[" + statement + "]")); }

std::string rule_listing(const std::string& expr) {
  const auto listing = compile_listing(Family::kIp, "t", samples::commands(samples::rule(expr)));
  if (!listing.ok()) return listing.error().message;
  return listing.value().chains.front().rules.front();
}

std::string match(const char* op, const char* left, const char* right) {
  return std::string(R"({"match":{"op":")") + op + R"(","left":)" + left + R"(,"right":)" + right + "}}";
}

constexpr const char* kSource = R"({"payload":{"protocol":"ip","field":"saddr"}})";
constexpr const char* kMark = R"({"meta":{"key":"mark"}})";

}  // namespace

TEST(samples_compile) {
  CHECK_EQUAL(complaint(samples::objects()), "");
  for (const std::string& rule : samples::rules()) CHECK_EQUAL(complaint(samples::rule(rule)), "");
}

TEST(canonical_text_of_a_rule) {
  CHECK_EQUAL(rule_listing(samples::rules()[9]),
              "[numgen dreg 1 mod 4 type random] [payload dreg 9 base network offset 16 len 4] [meta key l4proto dreg 10] "
              "[payload dreg 11 base transport offset 2 len 2] [lookup sreg 1 dreg 1 set endpoints] "
              "[nat type dnat family ip address 1 port 9] comment why");
}

TEST(canonical_text_of_a_hash) {
  CHECK_EQUAL(rule_listing(samples::rules()[10]),
              "[payload dreg 3 base network offset 12 len 4] [payload dreg 17 base transport offset 0 len 2] "
              "[hash sreg 3 dreg 1 len 8 mod 251 seed 1 type jhash] [payload dreg 9 base network offset 16 len 4] "
              "[meta key l4proto dreg 10] [payload dreg 11 base transport offset 2 len 2] "
              "[lookup sreg 1 dreg 1 set endpoints] [nat type dnat family ip address 1 port 9] comment why");
  const std::string hash = R"({"jhash":{"mod":2,"seed":1,"expr":{"payload":{"protocol":"ip","field":"saddr"}}}})";
  const std::string rule = "commands[0].add.rule.expr[0].";
  CHECK_EQUAL(complaint(samples::rule(R"([{"vmap":{"key":)" + hash + R"(,"data":"@x"}}])")),
              rule + "vmap.key: a hash is taken in the key of dnat's map alone");
  CHECK_EQUAL(complaint(samples::rule(R"([{"mangle":{"key":{"meta":{"key":"mark"}},"value":)" + hash + "}}]")),
              rule + "mangle.value: a hash is taken in the key of dnat's map alone");
  CHECK_EQUAL(complaint(samples::rule(R"([{"dnat":{"addr":{"map":{"key":{"jhash":{"mod":2,"seed":1,"expr":)" + hash +
                                      R"(}},"data":"@x"}}}}])")),
              rule + "dnat.addr.map.key.jhash.expr: a hash of a hash");
  CHECK_EQUAL(complaint(samples::rule(R"([{"dnat":{"addr":{"map":{"key":{"jhash":{"mod":0,"seed":1,"expr":1}},"data":"@x"}}}}])"))
                  .starts_with(rule + "dnat.addr.map.key.jhash.expr"),
              true);
}

TEST(refusals_name_their_path) {
  CHECK_EQUAL(complaint("1"), "commands[0]: expected an object with one member, found 1");
  CHECK_EQUAL(complaint(R"({"destroy":{"table":{"family":"ip","name":"t"}}})"),
              "commands[0].destroy: not a command this compiler takes");
  CHECK_EQUAL(complaint(R"({"add":{"flowtable":{}}})"), "commands[0].add.flowtable: not an object this compiler takes");
  CHECK_EQUAL(complaint(R"({"add":{"chain":{"family":"ip6","table":"t","name":"x"}}})"),
              "commands[0].add.chain.family: expected the transaction's family \"ip\", found \"ip6\"");
  CHECK_EQUAL(complaint(R"({"add":{"chain":{"family":"ip","table":"u","name":"x"}}})"),
              "commands[0].add.chain.table: expected the transaction's table \"t\", found \"u\"");
  CHECK_EQUAL(complaint(R"({"add":{"chain":{"family":"ip","table":"t","name":"x","dev":"lo"}}})"),
              "commands[0].add.chain.dev: not supported here");
  CHECK_EQUAL(complaint(R"({"add":{"set":{"family":"ip","table":"t","name":"s","type":["ipv4_addr","verdict"]}}})"),
              "commands[0].add.set.type[1]: expected ipv4_addr, ipv6_addr, inet_proto, inet_service, mark, ifname or integer, found "
              "\"verdict\"");
  CHECK_EQUAL(complaint(R"({"add":{"set":{"family":"ip","table":"t","name":"s","type":"mark","flags":["interval"]}}})"),
              "commands[0].add.set.type: mark, ifname and integer have no intervals");
  CHECK_EQUAL(rule_complaint(R"({"tproxy":null})"), "commands[0].add.rule.expr[0].tproxy: not a statement this compiler takes");
  CHECK_EQUAL(rule_complaint(R"({"accept":{"now":1}})"),
              "commands[0].add.rule.expr[0].accept: expected null, found an object with \"now\"");
  CHECK_EQUAL(rule_complaint(match("~", kMark, "1")),
              "commands[0].add.rule.expr[0].match.op: expected ==, !=, <, <=, >, >= or in, found \"~\"");
  CHECK_EQUAL(rule_complaint(match("==", kSource, "\"10.0.0.256\"")),
              "commands[0].add.rule.expr[0].match.right: expected a constant of type ipv4_addr, found \"10.0.0.256\"");
  CHECK_EQUAL(rule_complaint(match("==", kSource, R"({"prefix":{"addr":"10.0.0.0","len":33}})")),
              "commands[0].add.rule.expr[0].match.right.prefix.len: expected a number from 0 to 32, found 33");
  CHECK_EQUAL(rule_complaint(match("==", kMark, "4294967296")),
              "commands[0].add.rule.expr[0].match.right: expected a constant of type mark, found 4294967296");
}

TEST(misuse_is_refused) {
  CHECK(!rule_complaint(match("<", R"({"ct":{"key":"state"}})", "\"new\"")).empty());
  CHECK(!rule_complaint(match("==", R"({"payload":{"protocol":"ip6","field":"saddr"}})", "\"::1\"")).empty());
  CHECK(!rule_complaint(match("==", R"({"concat":[{"meta":{"key":"mark"}},{"meta":{"key":"mark"}}]})", "1")).empty());
  CHECK(!rule_complaint(match("==", kMark, "\"@\"")).empty());
  CHECK(!rule_complaint(match("==", R"({"meta":{"key":"iifname"}})", "\"sixteen-bytes-xx\"")).empty());
  CHECK(!rule_complaint(match("==", R"({"meta":{"key":"iifname"}})", "\"*\"")).empty());
  CHECK(!rule_complaint(R"({"mangle":{"key":{"ct":{"key":"state"}},"value":1}})").empty());
  CHECK(!rule_complaint(R"({"reject":{"type":"icmpv6"}})").empty());
  CHECK(!rule_complaint(R"({"masquerade":{"flags":"often"}})").empty());
  CHECK(!complaint(R"({"insert":{"chain":{"family":"ip","table":"t","name":"x"}}})").empty());
  CHECK(!complaint(R"({"flush":{"rule":{"family":"ip","table":"t","chain":"x"}}})").empty());
  CHECK(!complaint(R"({"add":{"chain":{"family":"ip","table":"t","name":"x","policy":"drop"}}})").empty());
  CHECK(!complaint(R"({"add":{"set":{"family":"ip","table":"t","name":"s","type":"ipv4_addr","map":"verdict"}}})").empty());
  CHECK(!complaint(R"({"add":{"set":{"family":"ip","table":"t","name":")" + std::string(256, 'n') +
                   R"(","type":"ipv4_addr"}}})").empty());
}

TEST(contradicting_transports_are_refused) {
  const std::string udp = match("==", R"({"meta":{"key":"l4proto"}})", "\"udp\"");
  const std::string tcp = match("==", R"({"payload":{"protocol":"tcp","field":"dport"}})", "80");
  CHECK_EQUAL(rule_complaint(udp + "," + tcp),
              "commands[0].add.rule.expr[1].match.left: the rule matches another transport protocol before");
}

TEST(registers_overflow_is_refused) {
  std::string concat;
  for (int index = 0; index < 5; ++index) concat += std::string(index == 0 ? "" : ",") + R"({"meta":{"key":"iifname"}})";
  CHECK(!rule_complaint(R"({"vmap":{"key":{"concat":[)" + concat + R"(]},"data":"@m"}})").empty());
}

TEST(dnat_knows_maps_declared_before) {
  const auto port = [](const char* content) {
    const std::string map = R"({"add":{"map":{"family":"ip","table":"t","name":"m","type":"ipv4_addr","map":)" + std::string(content) + "}}}";
    const std::string rule =
        samples::rule(R"([{"dnat":{"addr":{"map":{"key":{"payload":{"protocol":"ip","field":"daddr"}},"data":"@m"}}}}])");
    const auto listing = compile_listing(Family::kIp, "t", samples::commands(map + "," + rule));
    if (!listing.ok()) return std::string("refused");
    return std::string(listing.value().chains.front().rules.front().find(" port ") == std::string::npos ? "address" : "port");
  };
  CHECK_EQUAL(port(R"("ipv4_addr")"), "address");
  CHECK_EQUAL(port(R"(["ipv4_addr","inet_service"])"), "port");
  CHECK_EQUAL(port(R"("verdict")"), "refused");
  CHECK_EQUAL(port(R"("inet_service")"), "refused");
}

TEST(compiled_table_follows_the_commands) {
  const std::string text = R"({"add":{"chain":{"family":"ip","table":"t","name":"x"}}},)" + samples::rule(R"([{"drop":null}])") + "," +
                           samples::rule(R"([{"accept":null}])", "insert");
  const auto listing = compile_listing(Family::kIp, "t", samples::commands(text));
  CHECK_EQUAL(listing.value().chains.front().rules.size(), 2U);
  CHECK_EQUAL(listing.value().chains.front().rules.front(), "[immediate dreg 0 value accept] comment why");
  const auto flushed = compile_listing(
      Family::kIp, "t", samples::commands(text + R"(,{"flush":{"chain":{"family":"ip","table":"t","name":"x"}}})"));
  CHECK(flushed.value().chains.front().rules.empty());
}
