#include "iptables/programs.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sstream>
#include <thread>
#include <unordered_map>

#include "iptables/by_chain.h"
#include "iptables/file.h"
#include "iptables/render.h"
#include "iptables/rules_of_nft.h"
#include "netlink/socket.h"
#include "nftables/listing.h"

namespace pointsman::iptables {

namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

/// A stream of 250,000 rules takes the legacy programs most of a minute.
constexpr minutes kRestoreLimit{5};
constexpr minutes kSaveLimit{2};
constexpr seconds kProbeLimit{10};
/// Seconds to wait for the legacy programs' lock, /run/xtables.lock; the others take the option and need none.
constexpr const char* kLockWait = "30";
constexpr int kAttempts = 3;
/// Between a listing that gave way to a stream and the next attempt.
constexpr milliseconds kFirstPause{10};
constexpr milliseconds kLongestPause{1000};
/// For so long a listing makes way for streams; then they wait for it once.
constexpr seconds kPatience{5};
/// And no longer than this.
constexpr seconds kLongestWait{10};
/// iptables' RESOURCE_PROBLEM: the lock, or EAGAIN of the kernel. The nft flavour uses it for whatever the kernel refuses.
constexpr int kResourceProblem = 4;
constexpr std::size_t kShownWords = 600;

void ignore(std::string_view) {}

std::string base_of(Family family) { return family == Family::kIPv4 ? "iptables" : "ip6tables"; }

struct Version {
  std::string number;
  Flavor flavor;
};

/// `iptables-restore v1.8.9 (nf_tables)`; releases before 1.8 name no flavour and are legacy.
std::optional<Version> version_of(const ProcessEnvironment& environment, const std::string& path) {
  std::string printed;
  const Exit exit = run_program(environment, path, {"--version"}, {}, kProbeLimit, [&](std::string_view piece) { printed += piece; });
  if (exit.code != 0) return {};
  const std::size_t start = printed.find(" v");
  if (start == std::string::npos) return {};
  const std::size_t end = std::min(printed.find_first_not_of("0123456789.", start + 2), printed.size());
  const bool nft = printed.find("(nf_tables)") != std::string::npos;
  return Version{printed.substr(start + 2, end - start - 2), nft ? Flavor::kNft : Flavor::kLegacy};
}

/// @param action `restore` or `save`.
std::optional<std::string> find_program(const ProcessEnvironment& environment, Family family, Flavor flavor, const std::string& action) {
  const std::string base = base_of(family);
  if (auto own = environment.find(base + "-" + name_of(flavor) + "-" + action)) return own;
  auto common = environment.find(base + "-" + action);
  if (!common) return {};
  const auto version = version_of(environment, *common);
  if (!version || version->flavor != flavor) return {};
  return common;
}

Failure missing_program(Family family, Flavor flavor, const std::string& action) {
  Failure failure;
  failure.error_number = ENOENT;
  const std::string base = base_of(family);
  failure.reason = "neither " + base + "-" + name_of(flavor) + "-" + action + " nor a " + base + "-" + action + " of the " +
                   name_of(flavor) + " flavour";
  return failure;
}

Failure failure_of(const std::string& path, const Exit& exit) {
  Failure failure;
  const std::string program = path.substr(path.rfind('/') + 1);
  failure.error_number = exit.failure;
  if (exit.failure != 0) {
    failure.reason = program;
    return failure;
  }
  if (exit.timed_out) {
    failure.error_number = ETIMEDOUT;
    failure.reason = program + " took too long";
  } else if (exit.code) {
    failure.reason = program + " exit code " + std::to_string(*exit.code);
  } else {
    failure.reason = program + " was killed";
  }
  const std::string words = in_one_line(exit.words);
  if (!words.empty()) failure.reason += ": " + words;
  return failure;
}

bool succeeded(const Exit& exit) { return exit.failure == 0 && exit.code == 0; }

/// Whether a legacy table is there; asking the programs for one would create it. Where the kernel does not report it, it may be.
bool legacy_table_exists(Family family, Table table) {
  const auto content = read_file(table_names_file(family));
  if (!content.ok()) return content.error() != ENOENT;
  std::istringstream names(content.value());
  for (std::string name; std::getline(names, name);) {
    if (name == name_of(table)) return true;
  }
  return false;
}

/// The first request of every nft program, which fails without nf_tables or the capability. Any listing by them would read all rules.
bool nf_tables_answers() {
  auto socket = netlink::Socket::open();
  return socket.ok() && nftables::ruleset_generation(socket.value()).ok();
}

bool flavor_works(const ProcessEnvironment& environment, Family family, Flavor flavor, bool last_resort) {
  if (flavor == Flavor::kLegacy && read_file(table_names_file(family)).ok()) return true;
  if (flavor == Flavor::kLegacy && !last_resort) return false;
  const auto save = find_program(environment, family, flavor, "save");
  if (!save) return false;
  if (flavor == Flavor::kNft) return nf_tables_answers();
  return succeeded(run_program(environment, *save, {"-t", "nat"}, {}, kProbeLimit, ignore));
}

/// Streams of the nft flavour that this process has begun, and those under way.
std::atomic<std::uint32_t> streams_begun{0};
std::atomic<std::uint32_t> streams_under_way{0};
/// Listings that have made way for long enough.
std::atomic<std::uint32_t> listings_ahead{0};

/// Microseconds that listings have taken.
std::atomic<std::int64_t> listed_for{0};

std::int64_t thread_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000 + time.tv_nsec / 1000;
}

class NftStream {
 public:
  NftStream() {
    const auto end = std::chrono::steady_clock::now() + kLongestWait;
    while (listings_ahead > 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kFirstPause);
    ++streams_under_way;
    ++streams_begun;
  }
  NftStream(const NftStream&) = delete;
  NftStream& operator=(const NftStream&) = delete;
  ~NftStream() { --streams_under_way; }
};

class Ahead {
 public:
  Ahead() { ++listings_ahead; }
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;
  ~Ahead() { --listings_ahead; }
};

/// A run of a program that lists.
struct Listing {
  const ProcessEnvironment& environment;
  const std::string& program;
  const std::vector<std::string>& arguments;
  std::string_view input;
};

/// Runs it, and counts what it takes.
Exit run_listing(const Listing& listing, milliseconds limit, const std::function<void(std::string_view)>& output,
                 const std::function<bool()>& gives_way = {}) {
  Exit exit = run_program(listing.environment, listing.program, listing.arguments, listing.input, limit, output, gives_way);
  listed_for += exit.processor.count();
  return exit;
}

/// Runs a program of the nft flavour. It reads all rules, begins again if a transaction has committed meanwhile, and then prints. Beside a stream of ours
/// it would only keep a core busy. So it ends when one begins, and is started after it. Where there is always another stream they wait for a listing in
/// the end, as external changes would never be found.
Exit list_beside_streams(const Listing& listing, const std::function<void(std::string_view)>& output) {
  const auto began = std::chrono::steady_clock::now();
  const auto end = began + kSaveLimit;
  std::optional<Ahead> ahead;
  const auto left = [&] { return std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now()); };
  for (milliseconds pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    if (!ahead && std::chrono::steady_clock::now() - began >= kPatience) ahead.emplace();
    while (streams_under_way > 0 && left() > milliseconds(0)) std::this_thread::sleep_for(kFirstPause);
    const std::uint32_t begun = streams_begun;
    bool prints = false;
    bool gave_way = false;
    const auto take = [&](std::string_view piece) {
      prints = true;
      output(piece);
    };
    const auto gives_way = [&] { return gave_way = !ahead && !prints && streams_begun != begun; };
    const Exit exit = run_listing(listing, left(), take, gives_way);
    if (!gave_way || left() <= pause) return exit;
    std::this_thread::sleep_for(pause);
  }
}

Exit run_lister(Flavor flavor, const Listing& listing, const std::function<void(std::string_view)>& output) {
  return flavor == Flavor::kNft ? list_beside_streams(listing, output) : run_listing(listing, kSaveLimit, output);
}

const std::vector<std::string>& restore_options() {
  static const std::vector<std::string> options{"--noflush", "-w", kLockWait};
  return options;
}

/// Runs iptables-restore to list.
RunRestore restore_of(const ProcessEnvironment& environment, Flavor flavor, const std::string& program) {
  return [&environment, flavor, program](std::string_view input, const std::function<void(std::string_view)>& output) {
    return run_lister(flavor, {environment, program, restore_options(), input}, output);
  };
}

std::vector<std::string> names_of(const std::vector<Table>& tables) {
  std::vector<std::string> names;
  for (const Table table : tables) names.emplace_back(name_of(table));
  return names;
}

/// The rules of a chain that cannot be listed whole.
netlink::Result<std::vector<std::string>, Failure> rules_of(const RunRestore& run, Family family, Flavor flavor, Table table,
                                                            const std::string& chain) {
  Failure failure;
  if (flavor == Flavor::kNft) {
    auto rules = nft_rules(family, table, chain);
    if (rules.ok()) return std::move(rules.value());
    failure.error_number = rules.error().code;
    failure.reason = rules.error().message;
    return failure;
  }
  auto rules = list_by_rule(run, table, chain, kForeignRule);
  if (rules.ok()) return std::move(rules.value());
  return failure_of("iptables-legacy-restore", rules.error());
}

/// The result of one run of iptables-save.
struct Saved {
  /// All chains of the tables that it listed whole. Chains of the table in which it broke off have neither rules nor digests.
  std::vector<ChainListing> chains;
  /// Requested tables that it could not list, and the reason.
  std::vector<Table> unlisted;
  Failure why;
};

bool holds(const std::vector<std::string>& names, Table table) { return std::ranges::find(names, name_of(table)) != names.end(); }

netlink::Result<Saved, Failure> run_and_parse(const ProcessEnvironment& environment, Flavor flavor, const std::string& program,
                                              const std::vector<std::string>& arguments, const std::vector<Table>& tables,
                                              const std::vector<std::string>& text_of) {
  const std::int64_t began = thread_time();
  SaveParser parser(text_of, names_of(tables));
  const auto feed = [&](std::string_view piece) { parser.feed(piece); };
  const Exit exit = run_lister(flavor, {environment, program, arguments, {}}, feed);
  if (!succeeded(exit) && !knows_no_rule(exit)) return failure_of(program, exit);
  auto parsed = succeeded(exit) ? parser.finish() : parser.break_off();
  listed_for += thread_time() - began;
  Saved saved;
  saved.why = failure_of(program, exit);
  if (!parsed.ok()) {
    saved.why.reason = program.substr(program.rfind('/') + 1) + ": " + parsed.error();
    return saved.why;
  }
  saved.chains = std::move(parsed.value());
  for (const Table table : tables) {
    const bool is_listed = succeeded(exit) ? !holds(parser.refused(), table) : holds(parser.complete(), table);
    if (!is_listed) saved.unlisted.push_back(table);
  }
  return saved;
}

/// The chains of a table that iptables-save cannot list, because of rules of other programs: each by itself, and what cannot be listed like this as the
/// kernel has it.
///
/// @param begun those of legacy tables.
netlink::Result<std::vector<ChainListing>, Failure> list_in_parts(const ProcessEnvironment& environment, Family family, Flavor flavor, Table table,
                                                                  const std::vector<std::string>& text_of, std::vector<ChainListing> begun,
                                                                  const Failure& why) {
  const auto program = find_program(environment, family, flavor, "restore");
  if (!program) return missing_program(family, flavor, "restore");
  const RunRestore run = restore_of(environment, flavor, *program);
  if (flavor == Flavor::kNft) {
    auto chains = nft_chains(family, table);
    if (!chains.ok()) return why;
    begun = std::move(chains.value());
  } else if (begun.empty()) {
    return why;
  }
  std::vector<std::string> names;
  for (const ChainListing& chain : begun) {
    // iptables-nft prints no condition on a set.
    if (flavor == Flavor::kLegacy || !chain.policy) names.push_back(chain.name);
  }
  // Chains of Kubernetes come first: runs that fail are few, and each ends at a chain.
  std::ranges::stable_partition(names, [](const std::string& name) { return name.starts_with("KUBE-"); });
  auto listed = list_by_chain(run, table, std::move(names), text_of);
  if (!listed.ok()) return failure_of(*program, listed.error());
  std::unordered_map<std::string, ChainListing*> by_name;
  for (ChainListing& chain : listed.value()) by_name.emplace(chain.name, &chain);
  for (ChainListing& chain : begun) {
    if (const auto found = by_name.find(chain.name); found != by_name.end()) {
      chain = std::move(*found->second);
      continue;
    }
    auto rules = rules_of(run, family, flavor, table, chain.name);
    if (!rules.ok()) return rules.error();
    chain.rule_count = static_cast<std::uint32_t>(rules.value().size());
    const bool is_kept = chain.policy || std::ranges::any_of(text_of, [&](const std::string& prefix) { return chain.name.starts_with(prefix); });
    if (is_kept) chain.rules = std::move(rules.value());
  }
  return begun;
}

/// iptables-nft-save prints a rule with a condition on a set as if it applied to every packet.
void mark_foreign_ends(Family family, Table table, std::vector<ChainListing>& chains) {
  const auto is_end = [](const std::string& rule) { return rule == "-j ACCEPT" || rule == "-j DROP" || rule == "-j RETURN"; };
  for (ChainListing& chain : chains) {
    if (chain.table != name_of(table) || !chain.policy || !chain.rules || std::ranges::none_of(*chain.rules, is_end)) continue;
    const auto rules = nft_rules(family, table, chain.name);
    // It has changed meanwhile.
    if (!rules.ok() || rules.value().size() != chain.rules->size()) continue;
    for (std::size_t index = 0; index < rules.value().size(); ++index) {
      if (is_end((*chain.rules)[index]) && rules.value()[index].starts_with(kForeignRule)) (*chain.rules)[index] = rules.value()[index];
    }
  }
}

/// @param options of the program, beside the table.
netlink::Result<std::vector<ChainListing>, Failure> save(const ProcessEnvironment& environment, Family family, Flavor flavor,
                                                         const std::vector<Table>& tables, const std::vector<std::string>& text_of,
                                                         const std::vector<std::string>& options) {
  const auto program = find_program(environment, family, flavor, "save");
  if (!program) return missing_program(family, flavor, "save");
  std::vector<Table> present;
  std::ranges::copy_if(tables, std::back_inserter(present),
                       [&](Table table) { return flavor == Flavor::kNft || legacy_table_exists(family, table); });
  // The nft flavour reads all tables of the family from the kernel whichever it is asked for, and prints all if it is asked for none. So
  // several cost one run, and show one moment.
  const bool together = flavor == Flavor::kNft && present.size() > 1;
  std::vector<ChainListing> chains;
  for (std::size_t next = 0; next < present.size(); next += together ? present.size() : 1) {
    const std::vector<Table> asked = together ? present : std::vector<Table>{present[next]};
    std::vector<std::string> arguments = options;
    if (!together) arguments.insert(arguments.begin(), {"-t", name_of(asked.front())});
    auto saved = run_and_parse(environment, flavor, *program, arguments, asked, text_of);
    if (!saved.ok()) return saved.error();
    for (const Table table : asked) {
      std::vector<ChainListing> own;
      for (ChainListing& chain : saved.value().chains) {
        if (chain.table == name_of(table)) own.push_back(std::move(chain));
      }
      if (std::ranges::find(saved.value().unlisted, table) != saved.value().unlisted.end()) {
        // It prints counters in another place, and the next counts would be compared with none.
        if (!options.empty()) return saved.value().why;
        auto parts = list_in_parts(environment, family, flavor, table, text_of, std::move(own), saved.value().why);
        if (!parts.ok()) return parts.error();
        own = std::move(parts.value());
      } else if (flavor == Flavor::kNft) {
        mark_foreign_ends(family, table, own);
      }
      std::ranges::move(own, std::back_inserter(chains));
    }
  }
  return chains;
}

}  // namespace

const char* table_names_file(Family family) {
  return family == Family::kIPv4 ? "/proc/net/ip_tables_names" : "/proc/net/ip6_tables_names";
}

std::vector<FoundFlavor> find_flavors(const ProcessEnvironment& environment, Family family) {
  std::vector<FoundFlavor> found;
  for (const Flavor flavor : {Flavor::kNft, Flavor::kLegacy}) {
    const auto restore_program = find_program(environment, family, flavor, "restore");
    if (!restore_program) continue;
    const auto version = version_of(environment, *restore_program);
    if (version && flavor_works(environment, family, flavor, found.empty())) found.push_back({flavor, version->number});
  }
  return found;
}

std::string in_one_line(const std::string& words) {
  std::string line;
  for (std::size_t start = 0; start < words.size();) {
    const std::size_t end = std::min(words.find('\n', start), words.size());
    const std::string_view part = std::string_view(words).substr(start, end - start);
    start = end + 1;
    if (part.empty() || part.starts_with("Try `") || part.starts_with("# Warning")) continue;
    if (!line.empty()) line += "; ";
    line += part;
  }
  if (line.size() <= kShownWords) return line;
  std::size_t end = kShownWords;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0) == 0x80) --end;
  line.resize(end);
  return line + "…";
}

std::optional<std::size_t> complained_line(const std::string& words) {
  // "iptables-restore: line 12 failed", "line 3: RULE_APPEND failed (…)", "Error occurred at line: 4", "COMMIT expected at line 3".
  for (std::size_t at = words.find("line"); at != std::string::npos; at = words.find("line", at + 1)) {
    const std::size_t start = words.find_first_not_of(": ", at + std::strlen("line"));
    if (start == std::string::npos || start == at + std::strlen("line")) continue;
    std::size_t number = 0;
    std::size_t digits = 0;
    while (start + digits < words.size() && words[start + digits] >= '0' && words[start + digits] <= '9' && digits < 9) {
      number = number * 10 + static_cast<std::size_t>(words[start + digits++] - '0');
    }
    if (digits > 0) return number;
  }
  return {};
}

namespace {

/// Deletions of rules for which the program of the nft flavour does not get past a rule of another program.
std::vector<std::uint32_t> blocked_deletions(const ProcessEnvironment& environment, const std::string& program, const Transaction& transaction) {
  std::vector<std::uint32_t> blocked;
  for (std::uint32_t index = 0; index < transaction.operations.size(); ++index) {
    const auto* rule = std::get_if<RuleOperation>(&transaction.operations[index]);
    if (rule == nullptr || rule->verb != RuleVerb::kDelete) continue;
    const auto listed = list_by_chain(restore_of(environment, Flavor::kNft, program), rule->table, {rule->chain}, {});
    if (!listed.ok() || !listed.value().empty()) continue;
    const auto rules = nft_rules(transaction.family, rule->table, rule->chain);
    if (rules.ok() && !rules.value().empty()) blocked.push_back(index);
  }
  return blocked;
}

/// Rules that lead to a chain have to go before it, and after what takes their place has come.
netlink::Result<Ack, Failure> restore_around(const ProcessEnvironment& environment, const Transaction& transaction,
                                             const std::vector<std::uint32_t>& blocked);

netlink::Result<Ack, Failure> send_stream(const ProcessEnvironment& environment, const Transaction& transaction) {
  const Stream stream(transaction);
  const Ack ack{stream.text().size(), stream.rules()};
  if (transaction.operations.empty()) return ack;
  const auto program = find_program(environment, transaction.family, transaction.flavor, "restore");
  if (!program) return missing_program(transaction.family, transaction.flavor, "restore");
  if (transaction.flavor == Flavor::kNft) {
    const auto blocked = blocked_deletions(environment, *program, transaction);
    if (!blocked.empty()) return restore_around(environment, transaction, blocked);
  }
  std::optional<NftStream> sending;
  if (transaction.flavor == Flavor::kNft) sending.emplace();
  for (int attempt = 1;; ++attempt) {
    const Exit exit = run_program(environment, *program, restore_options(), stream.text(), kRestoreLimit, ignore);
    if (succeeded(exit)) return ack;
    const bool busy = transaction.flavor == Flavor::kLegacy && exit.code == kResourceProblem;
    const bool locked = exit.words.find("xtables lock") != std::string::npos;
    if (busy && !locked && attempt < kAttempts) continue;
    Failure failure = failure_of(*program, exit);
    if (busy) failure.error_number = EAGAIN;
    if (const auto line = complained_line(exit.words)) {
      if (auto place = stream.at(*line)) {
        failure.object = std::move(place->object);
        failure.operation = place->operation;
      }
    }
    return failure;
  }
}

netlink::Result<Ack, Failure> restore_around(const ProcessEnvironment& environment, const Transaction& transaction,
                                             const std::vector<std::uint32_t>& blocked) {
  Transaction before{transaction.family, transaction.flavor, {}};
  Transaction after = before;
  std::vector<RuleOperation> deletions;
  for (std::uint32_t index = 0; index < transaction.operations.size(); ++index) {
    const Operation& operation = transaction.operations[index];
    if (std::ranges::find(blocked, index) != blocked.end()) {
      deletions.push_back(std::get<RuleOperation>(operation));
    } else {
      (std::holds_alternative<DeleteChainOperation>(operation) ? after : before).operations.push_back(operation);
    }
  }
  // Indexes are of the whole transaction.
  const auto without_index = [](Failure failure) {
    failure.operation.reset();
    return failure;
  };
  const auto failure_to_delete = [](const netlink::Error& error) {
    Failure failure;
    failure.error_number = error.code;
    failure.reason = "cannot delete a rule behind one of another program: " + error.message;
    return failure;
  };
  // Handles are looked up before any rule is inserted, so that no new rule is deleted in place of an old one.
  const auto found = find_nft_rules(transaction.family, deletions);
  if (!found.ok()) return failure_to_delete(found.error());
  auto first = send_stream(environment, before);
  if (!first.ok()) return without_index(first.error());
  if (auto deleted = delete_nft_rules(transaction.family, found.value()); !deleted.ok()) return failure_to_delete(deleted.error());
  auto last = send_stream(environment, after);
  if (!last.ok()) return without_index(last.error());
  const auto count = static_cast<std::uint32_t>(deletions.size());
  return Ack{first.value().bytes + last.value().bytes, first.value().rules + count + last.value().rules};
}

}  // namespace

netlink::Result<Ack, Failure> restore(const ProcessEnvironment& environment, const Transaction& transaction) {
  return send_stream(environment, transaction);
}

netlink::Result<std::vector<ChainListing>, Failure> list_chains(const ProcessEnvironment& environment, Family family, Flavor flavor,
                                                                const std::vector<Table>& tables,
                                                                const std::vector<std::string>& text_of) {
  return save(environment, family, flavor, tables, text_of, {});
}

std::chrono::microseconds listing_time() { return std::chrono::microseconds(listed_for); }

netlink::Result<std::vector<ChainListing>, Failure> count_packets(const ProcessEnvironment& environment, Family family, Flavor flavor, Table table,
                                                                  const std::string& prefix) {
  auto listed = save(environment, family, flavor, {table}, {prefix}, {"-c"});
  if (listed.ok()) std::erase_if(listed.value(), [](const ChainListing& chain) { return chain.policy || chain.counted.empty(); });
  return listed;
}

}  // namespace pointsman::iptables
