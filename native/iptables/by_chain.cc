#include "iptables/by_chain.h"

#include <algorithm>

namespace pointsman::iptables {

namespace {

/// So many chains, or rules, that cannot be listed are found.
constexpr int kMostUnlisted = 16;
/// Rules that one run is asked for.
constexpr std::size_t kRulesAtOnce = 64;

std::string show_commands(Table table, const std::vector<std::string>& commands) {
  std::string input = "*" + std::string(name_of(table)) + "\n";
  for (const std::string& command : commands) input += "-S " + command + "\n";
  return input + "COMMIT\n";
}

bool has_succeeded(const Exit& exit) { return exit.failure == 0 && exit.code == 0; }

/// Turns what `-S` prints into what iptables-save prints.
class ShownChains {
 public:
  ShownChains(Table table, const std::vector<std::string>& text_of) : parser_(text_of, {name_of(table)}) {
    parser_.feed("*" + std::string(name_of(table)) + "\n");
  }

  void feed(std::string_view piece) {
    partial_ += piece;
    std::size_t start = 0;
    for (std::size_t end = partial_.find('\n'); end != std::string::npos; end = partial_.find('\n', start)) {
      take_line(std::string_view(partial_).substr(start, end - start));
      start = end + 1;
    }
    partial_.erase(0, start);
  }

  /// The chain that was printed last; empty before the first.
  const std::string& last() const { return last_; }

  netlink::Result<std::vector<ChainListing>, std::string> finish() {
    parser_.feed("COMMIT\n");
    return parser_.finish();
  }

 private:
  void take_line(std::string_view line) {
    const bool is_built_in = line.starts_with("-P ");
    if (!is_built_in && !line.starts_with("-N ")) return parser_.feed(std::string(line) + "\n");
    const std::string_view declared = line.substr(3);
    last_ = declared.substr(0, declared.find(' '));
    parser_.feed(":" + std::string(declared) + (is_built_in ? "" : " -") + " [0:0]\n");
  }

  SaveParser parser_;
  std::string partial_;
  std::string last_;
};

/// The place of the chain at which a run ended: the one that it names, or was printing.
std::size_t failed_place(const std::vector<std::string>& names, const std::string& last, const std::string& words) {
  const auto found = std::ranges::find(names, last);
  if (found == names.end()) return 0;
  const auto next = found + 1;
  const bool names_next = next != names.end() && words.find("`" + *next + "'") != std::string::npos;
  return static_cast<std::size_t>((names_next ? next : found) - names.begin());
}

}  // namespace

bool knows_no_rule(const Exit& exit) { return exit.failure == 0 && (exit.code == 1 || exit.code == 3); }

netlink::Result<std::vector<ChainListing>, Exit> list_by_chain(const RunRestore& run, Table table, std::vector<std::string> names, const std::vector<std::string>& text_of) {
  std::vector<ChainListing> listed;
  for (int unlisted = 0; !names.empty() && unlisted < kMostUnlisted; ++unlisted) {
    ShownChains shown(table, text_of);
    const Exit exit = run(show_commands(table, names), [&](std::string_view piece) { shown.feed(piece); });
    if (!has_succeeded(exit) && !knows_no_rule(exit)) return exit;
    const std::size_t failed = has_succeeded(exit) ? names.size() : failed_place(names, shown.last(), exit.words);
    auto chains = shown.finish();
    if (!chains.ok()) return listed;
    for (ChainListing& chain : chains.value()) {
      if (failed == names.size() || chain.name != names[failed]) listed.push_back(std::move(chain));
    }
    names.erase(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(failed + 1, names.size())));
  }
  return listed;
}

netlink::Result<std::vector<std::string>, Exit> list_by_rule(const RunRestore& run, Table table, const std::string& chain, std::string_view unlisted) {
  std::vector<std::string> rules;
  const std::string start = "-A " + chain;
  for (int attempt = 0; attempt < kMostUnlisted; ++attempt) {
    std::vector<std::string> commands;
    for (std::size_t number = 1; number <= kRulesAtOnce; ++number) commands.push_back(chain + " " + std::to_string(rules.size() + number));
    std::string output;
    const Exit exit = run(show_commands(table, commands), [&](std::string_view piece) { output += piece; });
    if (!has_succeeded(exit) && !knows_no_rule(exit)) return exit;
    std::size_t complete = 0;
    std::size_t at = 0;
    for (std::size_t end = output.find('\n'); end != std::string::npos; end = output.find('\n', at)) {
      const std::string_view line = std::string_view(output).substr(at, end - at);
      at = end + 1;
      if (!line.starts_with(start)) continue;
      rules.emplace_back(line.substr(std::min(start.size() + 1, line.size())));
      ++complete;
    }
    if (has_succeeded(exit)) {
      if (complete < kRulesAtOnce) break;
      // The next rules cost no patience.
      --attempt;
    } else {
      rules.emplace_back(unlisted);
    }
  }
  return rules;
}

}  // namespace pointsman::iptables
