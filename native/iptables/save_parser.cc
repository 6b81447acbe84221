#include "iptables/save_parser.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace pointsman::iptables {

namespace {

constexpr std::size_t kShownLine = 200;

/// Cuts the first word off.
std::string_view next_word(std::string_view& rest) {
  const std::size_t end = std::min(rest.find(' '), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

}  // namespace

void SaveParser::complain(const char* what, std::string_view line) {
  if (complaint_) return;
  complaint_ = "line " + std::to_string(line_number_) + " of the listing " + what;
  if (!line.empty()) *complaint_ += ": " + std::string(line.substr(0, kShownLine));
}

void SaveParser::feed(std::string_view piece) {
  for (std::size_t end = piece.find('\n'); end != std::string_view::npos; end = piece.find('\n')) {
    if (partial_.empty()) {
      take_line(piece.substr(0, end));
    } else {
      partial_ += piece.substr(0, end);
      take_line(partial_);
      partial_.clear();
    }
    piece.remove_prefix(end + 1);
  }
  partial_ += piece;
}

void SaveParser::take_line(std::string_view line) {
  ++line_number_;
  if (line.empty()) return;
  if (line.starts_with('#')) return take_comment(line);
  if (line.starts_with('*')) {
    if (table_) complain("begins a table within another", line);
    table_ = std::string(line.substr(1));
    kept_ = place_of(*table_).has_value();
    by_name_.clear();
    return;
  }
  if (!table_) return complain("stands outside of a table", line);
  if (line == "COMMIT") {
    complete_.push_back(*std::exchange(table_, {}));
    return;
  }
  if (!kept_) return;
  if (line.starts_with(':')) return take_chain(line);
  // With counters, "[5:300] -A …".
  std::string_view rule = line;
  std::uint64_t packets = 0;
  if (line.starts_with('[')) {
    std::from_chars(line.data() + 1, line.data() + line.size(), packets);
    rule = line.substr(std::min(line.find(' '), line.size() - 1) + 1);
  }
  if (rule.starts_with("-A ")) return take_rule(rule, packets);
  complain("is not known", line);
}

void SaveParser::take_comment(std::string_view line) {
  // "# Table `nat' is incompatible, use 'nft' tool.": iptables-nft-save prints it and succeeds. One that "contains incompatible base-chains" follows.
  constexpr std::string_view kStart = "# Table `";
  if (!line.starts_with(kStart) || line.find("' is incompatible") == std::string_view::npos) return;
  const std::string_view rest = line.substr(kStart.size());
  refused_.emplace_back(rest.substr(0, rest.find('\'')));
}

std::optional<std::size_t> SaveParser::place_of(std::string_view table) const {
  const auto found = std::ranges::find(tables_, table);
  if (found == tables_.end()) return {};
  return static_cast<std::size_t>(found - tables_.begin());
}

void SaveParser::take_chain(std::string_view declaration) {
  std::string_view rest = declaration.substr(1);
  Chain chain;
  chain.listing.table = *table_;
  chain.listing.name = std::string(next_word(rest));
  const std::string_view policy = next_word(rest);
  if (chain.listing.name.empty() || policy.empty()) return complain("declares no chain", declaration);
  if (policy != "-") chain.listing.policy = std::string(policy);
  const bool kept = chain.listing.policy || std::ranges::any_of(text_of_, [&](const std::string& prefix) {
                      return chain.listing.name.starts_with(prefix);
                    });
  if (kept) chain.listing.rules.emplace();
  if (!by_name_.emplace(chain.listing.name, chains_.size()).second) return complain("declares a chain again", declaration);
  chains_.push_back(std::move(chain));
}

void SaveParser::take_rule(std::string_view rule, std::uint64_t packets) {
  std::string_view rest = rule.substr(3);
  const auto found = by_name_.find(std::string(next_word(rest)));
  if (found == by_name_.end()) return complain("is of a chain that is not declared", rule);
  Chain& chain = chains_[found->second];
  ++chain.listing.rule_count;
  chain.digest.add(rest);
  if (!chain.listing.rules) return;
  chain.listing.rules->emplace_back(rest);
  if (packets > 0) chain.listing.counted.push_back({std::string(rest), packets});
}

netlink::Result<std::vector<ChainListing>, std::string> SaveParser::finish() {
  if (!partial_.empty()) take_line(std::exchange(partial_, {}));
  if (table_) complain("is the last, before COMMIT", {});
  return break_off();
}

netlink::Result<std::vector<ChainListing>, std::string> SaveParser::break_off() {
  if (complaint_) return *complaint_;
  std::vector<ChainListing> listings;
  listings.reserve(chains_.size());
  std::ranges::stable_sort(chains_, {}, [this](const Chain& chain) { return place_of(chain.listing.table); });
  for (Chain& chain : chains_) {
    const bool is_whole = chain.listing.table != table_;
    if (is_whole) chain.listing.digest = chain.digest.text();
    if (!is_whole) chain.listing.rules.reset();
    listings.push_back(std::move(chain.listing));
  }
  return listings;
}

}  // namespace pointsman::iptables
