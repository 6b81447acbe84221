#include "iptables/rules_of_nft.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/xt_conntrack.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "netlink/attribute_reader.h"
#include "netlink/batch.h"
#include "netlink/socket.h"
#include "nftables/listing.h"

namespace pointsman::iptables {

namespace {

using nftables::Expression;

nftables::Family nft_family(Family family) { return family == Family::kIPv4 ? nftables::Family::kIp : nftables::Family::kIp6; }

/// As xtables_save_string does.
std::string quoted_word(std::string_view text) {
  const auto is_plain = [](char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') || byte == '_' || byte == '-';
  };
  if (std::ranges::all_of(text, is_plain)) return std::string(text);
  std::string quoted = "\"";
  for (const char byte : text) {
    if (byte == '"' || byte == '\\' || byte == '\'') quoted += '\\';
    quoted += byte;
  }
  return quoted + '"';
}

/// A match or target of x_tables within a rule: their attributes have the same numbers.
struct Extension {
  std::string name;
  std::uint32_t revision = 0;
  netlink::ByteView info;
};

Extension extension_of(const Expression& expression) {
  Extension found;
  if (!expression.unknown) return found;
  netlink::AttributeReader reader(*expression.unknown);
  while (const auto attribute = reader.next()) {
    if (attribute->type == NFTA_MATCH_NAME) found.name = attribute->string();
    if (attribute->type == NFTA_MATCH_REV) found.revision = attribute->be32().value_or(UINT32_MAX);
    if (attribute->type == NFTA_MATCH_INFO) found.info = attribute->payload;
  }
  return found;
}

bool is_of_new_connections(const Extension& match) {
  if (match.name != "conntrack" || match.revision != 3 || match.info.size() < sizeof(xt_conntrack_mtinfo3)) return false;
  xt_conntrack_mtinfo3 info{};
  std::memcpy(&info, match.info.data(), sizeof info);
  return info.match_flags == XT_CONNTRACK_STATE && info.invert_flags == 0 && info.state_mask == XT_CONNTRACK_STATE_BIT(IP_CT_NEW);
}

/// `-m comment --comment "…"`; empty for a match that is none of those in jumps.
std::string spelling_of_match(const Extension& match) {
  if (is_of_new_connections(match)) return "-m conntrack --ctstate NEW ";
  if (match.name != "comment" || match.revision != 0) return {};
  const std::string_view text(reinterpret_cast<const char*>(match.info.data()), match.info.size());
  return "-m comment --comment " + quoted_word(text.substr(0, text.find('\0'))) + " ";
}

std::string spelling_of_verdict(const nftables::Verdict& verdict) {
  switch (verdict.code) {
    case NF_ACCEPT:
      return "-j ACCEPT";
    case NF_DROP:
      return "-j DROP";
    case NFT_RETURN:
      return "-j RETURN";
    case NFT_JUMP:
      return "-j " + verdict.chain;
    case NFT_GOTO:
      return "-g " + verdict.chain;
    default:
      return {};
  }
}

netlink::Result<std::vector<nftables::Rule>> rules_of_chain(Family family, Table table, const std::string& chain) {
  auto socket = netlink::Socket::open();
  if (!socket.ok()) return socket.error();
  auto rules = nftables::list_rules(socket.value(), nft_family(family), name_of(table), chain);
  // The chain is gone.
  if (!rules.ok() && rules.error().code == ENOENT) return std::vector<nftables::Rule>();
  return rules;
}

}  // namespace

std::string spelling_of(const nftables::Rule& rule) {
  std::string conditions;
  std::string end;
  bool is_foreign = false;
  for (const Expression& expression : rule.expressions) {
    if (expression.name == "counter") continue;
    const auto verdict = std::ranges::find_if(expression.fields, [](const nftables::Field& field) {
      return std::holds_alternative<nftables::Verdict>(field.value);
    });
    const std::string match = expression.name == "match" ? spelling_of_match(extension_of(expression)) : std::string();
    if (!match.empty()) {
      conditions += match;
    } else if (expression.name == "immediate" && verdict != expression.fields.end()) {
      end = spelling_of_verdict(std::get<nftables::Verdict>(verdict->value));
      if (end.empty()) is_foreign = true;
    } else if (expression.name == "target") {
      end = "-j " + extension_of(expression).name;
    } else {
      is_foreign = true;
    }
  }
  if (!is_foreign) return conditions + end;
  return std::string(kForeignRule) + (end.empty() ? "" : " " + end);
}

netlink::Result<std::vector<ChainListing>> nft_chains(Family family, Table table) {
  auto socket = netlink::Socket::open();
  if (!socket.ok()) return socket.error();
  const auto chains = nftables::list_chains(socket.value(), nft_family(family), name_of(table));
  if (!chains.ok()) return chains.error();
  std::vector<ChainListing> listings;
  for (const nftables::Chain& chain : chains.value()) {
    ChainListing& listing = listings.emplace_back();
    listing.table = name_of(table);
    listing.name = chain.name;
    if (chain.hook) listing.policy = chain.hook->policy == NF_DROP ? "DROP" : "ACCEPT";
  }
  return listings;
}

netlink::Result<std::vector<std::string>> nft_rules(Family family, Table table, const std::string& chain) {
  const auto rules = rules_of_chain(family, table, chain);
  if (!rules.ok()) return rules.error();
  std::vector<std::string> texts;
  for (const nftables::Rule& rule : rules.value()) texts.push_back(spelling_of(rule));
  return texts;
}

netlink::Result<std::vector<FoundRule>> find_nft_rules(Family family, const std::vector<RuleOperation>& operations) {
  std::vector<FoundRule> found;
  for (const RuleOperation& operation : operations) {
    const auto rules = rules_of_chain(family, operation.table, operation.chain);
    if (!rules.ok()) return rules.error();
    const auto rule = std::ranges::find_if(rules.value(), [&](const nftables::Rule& each) {
      const bool is_taken = std::ranges::any_of(found, [&](const FoundRule& other) {
        return other.table == operation.table && other.handle == each.handle.value_or(0);
      });
      return !is_taken && spelling_of(each) == operation.text;
    });
    if (rule == rules.value().end()) return netlink::system_error(ENOENT, "the rule is not there");
    found.push_back({operation.table, operation.chain, rule->handle.value_or(0)});
  }
  return found;
}

netlink::Status delete_nft_rules(Family family, const std::vector<FoundRule>& rules) {
  netlink::Batch batch(NFNL_SUBSYS_NFTABLES);
  for (const FoundRule& rule : rules) {
    batch.begin(NFT_MSG_DELRULE, 0, static_cast<std::uint8_t>(nft_family(family)));
    batch.writer().put_string(NFTA_RULE_TABLE, name_of(rule.table));
    batch.writer().put_string(NFTA_RULE_CHAIN, rule.chain);
    batch.writer().put_be64(NFTA_RULE_HANDLE, rule.handle);
    batch.end();
  }
  batch.finish();
  auto socket = netlink::Socket::open();
  if (!socket.ok()) return socket.error();
  return netlink::send_batch(socket.value(), batch.bytes(), batch.messages());
}

}  // namespace pointsman::iptables
