#include "iptables/programs.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sstream>
#include <thread>

#include "iptables/file.h"
#include "iptables/render.h"
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

/// Runs iptables-save, and counts what it takes.
Exit run_save(const ProcessEnvironment& environment, const std::string& program, const std::vector<std::string>& arguments, milliseconds limit,
              const std::function<void(std::string_view)>& output, const std::function<bool()>& gives_way = {}) {
  Exit exit = run_program(environment, program, arguments, {}, limit, output, gives_way);
  listed_for += exit.processor.count();
  return exit;
}

/// Runs iptables-nft-save. It reads all rules, begins again if a transaction has committed meanwhile, and then prints. Beside a stream of ours
/// it would only keep a core busy. So it ends when one begins, and is started after it. Where there is always another stream they wait for a listing in
/// the end, as external changes would never be found.
Exit list_beside_streams(const ProcessEnvironment& environment, const std::string& program, const std::vector<std::string>& arguments,
                         const std::function<void(std::string_view)>& output) {
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
    const Exit exit = run_save(environment, program, arguments, left(), take, gives_way);
    if (!gave_way || left() <= pause) return exit;
    std::this_thread::sleep_for(pause);
  }
}

/// Chains of these tables from one run of iptables-save.
netlink::Result<std::vector<ChainListing>, Failure> saved(const ProcessEnvironment& environment, Flavor flavor, const std::string& program,
                                                          const std::vector<std::string>& arguments, const std::vector<std::string>& tables,
                                                          const std::vector<std::string>& text_of) {
  const std::int64_t began = thread_time();
  SaveParser parser(text_of, tables);
  const auto feed = [&](std::string_view piece) { parser.feed(piece); };
  const Exit exit = flavor == Flavor::kNft ? list_beside_streams(environment, program, arguments, feed)
                                           : run_save(environment, program, arguments, kSaveLimit, feed);
  if (!succeeded(exit)) return failure_of(program, exit);
  auto parsed = parser.finish();
  listed_for += thread_time() - began;
  if (parsed.ok()) return std::move(parsed.value());
  Failure failure;
  failure.reason = program.substr(program.rfind('/') + 1) + ": " + parsed.error();
  return failure;
}

/// @param options of the program, beside the table.
netlink::Result<std::vector<ChainListing>, Failure> save(const ProcessEnvironment& environment, Family family, Flavor flavor,
                                                         const std::vector<Table>& tables, const std::vector<std::string>& text_of,
                                                         const std::vector<std::string>& options) {
  const auto program = find_program(environment, family, flavor, "save");
  if (!program) return missing_program(family, flavor, "save");
  std::vector<std::string> names;
  for (const Table table : tables) {
    if (flavor == Flavor::kNft || legacy_table_exists(family, table)) names.emplace_back(name_of(table));
  }
  // The nft flavour reads all tables of the family from the kernel whichever it is asked for, and prints all if it is asked for none. So
  // several cost one run, and show one moment.
  if (flavor == Flavor::kNft && names.size() > 1) return saved(environment, flavor, *program, options, names, text_of);
  std::vector<ChainListing> chains;
  for (const std::string& name : names) {
    std::vector<std::string> arguments{"-t", name};
    arguments.insert(arguments.end(), options.begin(), options.end());
    auto listed = saved(environment, flavor, *program, arguments, {name}, text_of);
    if (!listed.ok()) return listed;
    std::ranges::move(listed.value(), std::back_inserter(chains));
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

netlink::Result<Ack, Failure> restore(const ProcessEnvironment& environment, const Transaction& transaction) {
  const Stream stream(transaction);
  const Ack ack{stream.text().size(), stream.rules()};
  if (transaction.operations.empty()) return ack;
  const auto program = find_program(environment, transaction.family, transaction.flavor, "restore");
  if (!program) return missing_program(transaction.family, transaction.flavor, "restore");
  std::optional<NftStream> sending;
  if (transaction.flavor == Flavor::kNft) sending.emplace();
  for (int attempt = 1;; ++attempt) {
    const Exit exit = run_program(environment, *program, {"--noflush", "-w", kLockWait}, stream.text(), kRestoreLimit, ignore);
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
