#include "nftables/object.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include <array>

namespace pointsman::nftables {

namespace {

constexpr std::array<std::string_view, NF_INET_NUMHOOKS> kHooks{"prerouting", "input", "forward", "output", "postrouting"};

struct FlagName {
  std::uint32_t flag;
  const char* name;
};

constexpr std::array kSetFlags{
    FlagName{NFT_SET_ANONYMOUS, "anonymous"}, FlagName{NFT_SET_CONSTANT, "constant"},
    FlagName{NFT_SET_INTERVAL, "interval"},   FlagName{NFT_SET_TIMEOUT, "timeout"},
    FlagName{NFT_SET_EVAL, "dynamic"},        FlagName{NFT_SET_OBJECT, "object"},
};

const char* verb_name(Verb verb) {
  switch (verb) {
    case Verb::kAdd:
      return "add";
    case Verb::kCreate:
      return "create";
    case Verb::kInsert:
      return "insert";
    case Verb::kDelete:
      return "delete";
    case Verb::kFlush:
      return "flush";
  }
  return "";
}

std::string flags_text(std::uint32_t flags) {
  std::string text;
  for (const FlagName& each : kSetFlags) {
    if ((flags & each.flag) == 0) continue;
    text += (text.empty() ? "" : ",") + std::string(each.name);
    flags &= ~each.flag;
  }
  flags &= ~static_cast<std::uint32_t>(NFT_SET_MAP | NFT_SET_CONCAT);
  if (flags != 0) text += (text.empty() ? "" : ",") + std::to_string(flags);
  return text;
}

// nft turns single bytes of a key with intervals as if they were numbers of two: the kernel then turns nothing.
bool has_no_effect(const Expression& expression) {
  if (expression.name != "byteorder" || expression.unknown) return false;
  const auto length = expression.number(NFTA_BYTEORDER_LEN);
  const auto size = expression.number(NFTA_BYTEORDER_SIZE);
  return length && size && *length < *size &&
         expression.number(NFTA_BYTEORDER_SREG) == expression.number(NFTA_BYTEORDER_DREG);
}

std::string period_text(std::uint64_t milliseconds) {
  if (milliseconds % 1000 == 0) return std::to_string(milliseconds / 1000) + "s";
  return std::to_string(milliseconds) + "ms";
}

}  // namespace

bool Set::is_map() const { return (flags & NFT_SET_MAP) != 0; }

bool Set::is_verdict_map() const { return is_map() && data_type == static_cast<std::uint32_t>(NFT_DATA_VERDICT); }

std::optional<std::uint32_t> hook_number(std::string_view name) {
  for (std::uint32_t number = 0; number < kHooks.size(); ++number) {
    if (kHooks[number] == name) return number;
  }
  return std::nullopt;
}

std::string hook_text(const BaseHook& hook) {
  std::string name = hook.hook < kHooks.size() ? std::string(kHooks[hook.hook]) : std::to_string(hook.hook);
  if (hook.hook == NF_INET_INGRESS) name = "ingress";
  if (hook.hook == kEgress) name = "egress";
  // No name of an interface has a colon.
  for (const std::string& device : hook.devices) name += (&device == &hook.devices.front() ? " devices " : ":") + device;
  const std::string policy = verdict_text(Verdict{static_cast<std::int32_t>(hook.policy), ""});
  return "type " + hook.type + " hook " + name + " priority " + std::to_string(hook.priority) + " policy " + policy;
}

std::string declaration_text(const Set& set) {
  std::string text = set.is_map() ? "map" : "set";
  text += " key " + type_text(set.key_type) + " length " + std::to_string(set.key_length);
  if (!set.field_lengths.empty()) {
    text += " fields";
    for (const std::uint32_t length : set.field_lengths) text += " " + std::to_string(length);
  }
  if (set.is_verdict_map()) text += " content verdict";
  if (set.is_map() && !set.is_verdict_map()) {
    text += " content " + type_text(set.data_type) + " length " + std::to_string(set.data_length);
  }
  if (const std::string flags = flags_text(set.flags); !flags.empty()) text += " flags " + flags;
  if (set.timeout_ms != 0) text += " timeout " + period_text(set.timeout_ms);
  if (set.size != 0) text += " size " + std::to_string(set.size);
  if (set.element_expressions) text += " expressions " + hex_text(*set.element_expressions);
  return text;
}

std::string rule_text(const Rule& rule) {
  std::string text;
  for (const Expression& expression : rule.expressions) {
    if (has_no_effect(expression)) continue;
    text += (text.empty() ? "" : " ") + expression_text(expression);
  }
  if (rule.comment) text += (text.empty() ? "comment " : " comment ") + *rule.comment;
  return text;
}

std::string command_text(const Command& command) {
  const std::string verb = verb_name(command.verb);
  if (std::holds_alternative<Table>(command.object)) return verb + " table";
  if (const auto* chain = std::get_if<Chain>(&command.object)) return verb + " chain " + chain->name;
  if (const auto* set = std::get_if<Set>(&command.object)) return verb + (set->is_map() ? " map " : " set ") + set->name;
  if (const auto* timeout = std::get_if<Timeout>(&command.object)) return verb + " ct timeout " + timeout->name;
  if (const auto* counter = std::get_if<Counter>(&command.object)) return verb + " counter " + counter->name;
  const auto& rule = *std::get_if<Rule>(&command.object);
  if (rule.handle) return verb + " rule " + rule.chain + " handle " + std::to_string(*rule.handle);
  return verb + " rule " + rule.chain + ": " + rule_text(rule);
}

}  // namespace pointsman::nftables
