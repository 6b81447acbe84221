#include "addon/linux/iptables_argument.h"

#include <algorithm>

namespace pointsman::addon {

namespace {

/// XT_EXTENSION_MAXNAMELEN − 1.
constexpr std::size_t kMaxChain = 28;
/// XT_RECENT_NAME_LEN − 1.
constexpr std::size_t kMaxList = 199;
/// The programs read lines of less than 10 KiB.
constexpr std::size_t kMaxRule = 8192;

bool is_control(char byte) { return static_cast<unsigned char>(byte) < ' ' || byte == '\x7f'; }

/// A name that stays one word wherever it stands.
std::string word_argument(const Argument& at, std::size_t most) {
  std::string text = at.text(1, most);
  const auto splits = [](char byte) { return is_control(byte) || byte == ' ' || byte == '"' || byte == '\'' || byte == '\\'; };
  if (std::ranges::any_of(text, splits)) at.expect("a name without spaces, quotes and control characters");
  return text;
}

std::string rule_argument(const Argument& at) {
  std::string text = at.text(0, kMaxRule);
  if (std::ranges::any_of(text, is_control)) at.expect("a rule without control characters");
  return text;
}

iptables::EndpointRules endpoints_argument(const Argument& at, iptables::Family family) {
  constexpr const char* kProtocols[] = {"tcp", "udp", "sctp"};
  iptables::EndpointRules rules;
  rules.protocol = kProtocols[at.member("protocol").word({"tcp", "udp", "sctp"})];
  const Argument packed = at.member("endpoints");
  rules.endpoints = packed.bytes();
  const std::size_t length = iptables::endpoint_length(family);
  if (rules.endpoints.size() % length != 0) packed.expect("whole endpoints of " + std::to_string(length) + " bytes");
  const Argument affinity = at.member("affinity");
  if (affinity.is_null()) return rules;
  rules.affinity.emplace();
  rules.affinity->seconds = affinity.member("seconds").integer(1, kMaxSeconds);
  const Argument lists = affinity.member("lists");
  const auto items = lists.items();
  const std::size_t count = rules.endpoints.size() / length;
  if (items.size() != count) lists.expect("one list for each of " + std::to_string(count) + " endpoints");
  for (const Argument& item : items) rules.affinity->lists.push_back(iptables_list_argument(item));
  return rules;
}

iptables::ChainOperation chain_argument(const Argument& at, iptables::Family family) {
  iptables::ChainOperation operation;
  operation.table = iptables_table_argument(at.member("table"));
  operation.chain = word_argument(at.member("chain"), kMaxChain);
  for (const Argument& rule : at.member("rules").items()) {
    if (rule.member("type").either("text", "endpoints")) {
      operation.rules.emplace_back(endpoints_argument(rule, family));
    } else {
      operation.rules.emplace_back(iptables::TextRule{rule_argument(rule.member("text"))});
    }
  }
  const Argument owner = at.member("owner");
  if (!owner.is_null()) operation.owner = owner.text(1, kMaxRule);
  return operation;
}

iptables::Operation rules_operation_argument(const Argument& at, iptables::Family family) {
  const std::size_t type = at.member("type").word({"chain", "delete-chain", "rule"});
  if (type == 0) return chain_argument(at, family);
  const iptables::Table table = iptables_table_argument(at.member("table"));
  std::string chain = word_argument(at.member("chain"), kMaxChain);
  if (type == 1) return iptables::DeleteChainOperation{table, std::move(chain)};
  const auto verb = static_cast<iptables::RuleVerb>(at.member("verb").word({"insert", "append", "delete"}));
  return iptables::RuleOperation{verb, table, std::move(chain), rule_argument(at.member("text"))};
}

}  // namespace

iptables::Family iptables_family_argument(const Argument& at) { return at.either("IPv4", "IPv6") ? iptables::Family::kIPv6 : iptables::Family::kIPv4; }

iptables::Flavor iptables_flavor_argument(const Argument& at) {
  return at.either("legacy", "nft") ? iptables::Flavor::kNft : iptables::Flavor::kLegacy;
}

iptables::Table iptables_table_argument(const Argument& at) {
  constexpr iptables::Table kTables[] = {iptables::Table::kFilter, iptables::Table::kNat, iptables::Table::kMangle,
                                         iptables::Table::kRaw, iptables::Table::kSecurity};
  return kTables[at.word({"filter", "nat", "mangle", "raw", "security"})];
}

std::string iptables_list_argument(const Argument& at) {
  std::string name = word_argument(at, kMaxList);
  if (name.find('/') != std::string::npos) at.expect("a name without slashes");
  return name;
}

iptables::Transaction iptables_transaction_argument(const Argument& at) {
  iptables::Transaction transaction;
  transaction.family = iptables_family_argument(at.member("family"));
  transaction.flavor = iptables_flavor_argument(at.member("flavor"));
  for (const Argument& operation : at.member("operations").items()) {
    transaction.operations.push_back(rules_operation_argument(operation, transaction.family));
  }
  return transaction;
}

}  // namespace pointsman::addon
