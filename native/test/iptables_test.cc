#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>

#include "iptables/child_process.h"
#include "iptables/descriptor.h"
#include "iptables/digest.h"
#include "iptables/file.h"
#include "iptables/programs.h"
#include "iptables/recent.h"
#include "iptables/render.h"
#include "iptables/save_parser.h"
#include "netlink/socket.h"
#include "nftables/watch.h"
#include "test/check.h"

namespace {

using namespace pointsman;
using namespace pointsman::iptables;
using std::chrono::milliseconds;
using std::chrono::seconds;

netlink::Bytes endpoints_of(std::initializer_list<std::uint8_t> hosts) {
  netlink::Bytes packed;
  for (const std::uint8_t host : hosts) packed.insert(packed.end(), {10, 0, 0, host, 0, 80});
  return packed;
}

Transaction sample() {
  Transaction transaction;
  EndpointRules spread{"tcp", endpoints_of({1, 2, 3}), {}};
  EndpointRules sticky{"udp", endpoints_of({1, 2}), Affinity{60, {"A", "B"}}};
  transaction.operations = {
      DeleteChainOperation{Table::kNat, "OLD"},
      ChainOperation{Table::kNat, "SVC", {TextRule{"-j MARK"}, spread}, "default/web"},
      RuleOperation{RuleVerb::kInsert, Table::kFilter, "INPUT", "-j FWD"},
      ChainOperation{Table::kNat, "STICKY", {sticky}, {}},
      ChainOperation{Table::kFilter, "FWD", {}, {}},
      RuleOperation{RuleVerb::kAppend, Table::kFilter, "INPUT", "-j LAST"},
  };
  return transaction;
}

netlink::Result<std::vector<ChainListing>, std::string> parse(std::string_view text, std::size_t piece = 1000) {
  SaveParser parser({"KUBE-SVC-"}, {"nat", "filter"});
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) parser.feed(text.substr(0, piece));
  return parser.finish();
}

std::string complaint(std::string_view text) {
  const auto parsed = parse(text);
  return parsed.ok() ? "" : parsed.error();
}

std::string digest_of(std::initializer_list<std::string_view> rules) {
  Digest digest;
  for (const std::string_view rule : rules) digest.add(rule);
  return digest.text();
}

struct Ran {
  Exit exit;
  std::string output;
};

Ran run(const std::string& script, std::string_view input, milliseconds limit = seconds(60)) {
  Ran ran;
  const ProcessEnvironment environment{{}, {"LC_ALL=C"}};
  ran.exit = run_program(environment, "/bin/sh", {"-c", script}, input, limit, [&](std::string_view piece) { ran.output += piece; });
  return ran;
}

}  // namespace

TEST(iptables_stream_groups_tables_and_orders_lines) {
  const Transaction transaction = sample();
  const Stream stream(transaction);
  CHECK_EQUAL(stream.text(),
              "*nat\n"
              ":SVC - [0:0]\n"
              ":STICKY - [0:0]\n"
              ":OLD - [0:0]\n"
              "-A SVC -j MARK\n"
              "-A SVC -p tcp -m statistic --mode random --probability 0.33333333349 -j DNAT --to-destination 10.0.0.1:80\n"
              "-A SVC -p tcp -m statistic --mode random --probability 0.50000000000 -j DNAT --to-destination 10.0.0.2:80\n"
              "-A SVC -p tcp -j DNAT --to-destination 10.0.0.3:80\n"
              "-A STICKY -p udp -m recent --update --seconds 60 --reap --name A --mask 255.255.255.255 --rsource"
              " -j DNAT --to-destination 10.0.0.1:80\n"
              "-A STICKY -p udp -m recent --update --seconds 60 --reap --name B --mask 255.255.255.255 --rsource"
              " -j DNAT --to-destination 10.0.0.2:80\n"
              "-A STICKY -p udp -m statistic --mode random --probability 0.50000000000"
              " -m recent --set --name A --mask 255.255.255.255 --rsource -j DNAT --to-destination 10.0.0.1:80\n"
              "-A STICKY -p udp -m recent --set --name B --mask 255.255.255.255 --rsource -j DNAT --to-destination 10.0.0.2:80\n"
              "-X OLD\n"
              "COMMIT\n"
              "*filter\n"
              ":FWD - [0:0]\n"
              "-I INPUT -j FWD\n"
              "-A INPUT -j LAST\n"
              "COMMIT\n");
  CHECK_EQUAL(stream.rules(), 10U);
}

TEST(iptables_stream_knows_what_stands_in_a_line) {
  const Transaction transaction = sample();
  const Stream stream(transaction);
  const auto object = [&](std::size_t line) { return stream.at(line) ? stream.at(line)->object : "nothing"; };
  CHECK_EQUAL(object(0), "nothing");
  CHECK_EQUAL(object(1), "nat: *nat");
  CHECK_EQUAL(object(2), "nat: :SVC - [0:0] (default/web)");
  CHECK_EQUAL(object(5), "nat: -A SVC -j MARK (default/web)");
  CHECK_EQUAL(object(13), "nat: -X OLD");
  CHECK_EQUAL(object(14), "nat: COMMIT");
  CHECK_EQUAL(object(17), "filter: -I INPUT -j FWD");
  CHECK_EQUAL(object(18), "filter: -A INPUT -j LAST");
  CHECK_EQUAL(object(19), "filter: COMMIT");
  CHECK_EQUAL(object(20), "nothing");
  CHECK(!stream.at(14)->operation);
  CHECK_EQUAL(*stream.at(13)->operation, 0U);
  CHECK_EQUAL(*stream.at(8)->operation, 1U);
  CHECK_EQUAL(*stream.at(9)->operation, 3U);
}

TEST(iptables_digest_is_of_words_in_order) {
  const std::string digest = digest_of({"-m comment --comment \"a b\" -j X", "-j Y"});
  CHECK_EQUAL(digest.size(), 16U);
  CHECK_EQUAL(digest_of({"-m  comment --comment \"a b\" -j X ", "-j \"Y\""}), digest);
  CHECK(digest_of({"-m comment --comment a b -j X", "-j Y"}) != digest);
  CHECK(digest_of({"-j Y", "-m comment --comment \"a b\" -j X"}) != digest);
  CHECK(digest_of({"-m comment --comment \"a b\" -j X -j Y"}) != digest);
  CHECK(digest_of({R"(--comment "a\"b")"}) != digest_of({R"(--comment "ab")"}));
  CHECK(digest_of({}) != digest_of({""}));
}

TEST(iptables_listing_of_chains) {
  const std::string text =
      "# Generated by iptables-save\n*nat\n:OUTPUT ACCEPT [5:300]\n:KUBE-SVC-A - [0:0]\n:OTHER - [0:0]\n"
      "-A OUTPUT -j KUBE-SVC-A\n[1:60] -A OTHER -j RETURN\n-A KUBE-SVC-A -p tcp -j RETURN\nCOMMIT\n*filter\n:OUTPUT DROP\nCOMMIT\n";
  for (const std::size_t piece : {1000, 7, 1}) {
    const auto parsed = parse(text, piece);
    CHECK(parsed.ok());
    if (!parsed.ok()) return;
    const std::vector<ChainListing>& chains = parsed.value();
    CHECK_EQUAL(chains.size(), 4U);
    CHECK_EQUAL(*chains[0].policy, "ACCEPT");
    CHECK_EQUAL(chains[0].rules->at(0), "-j KUBE-SVC-A");
    CHECK(!chains[1].policy);
    CHECK_EQUAL(chains[1].rules->at(0), "-p tcp -j RETURN");
    CHECK_EQUAL(chains[1].digest, digest_of({"-p tcp -j RETURN"}));
    CHECK(!chains[2].rules);
    CHECK_EQUAL(chains[2].rule_count, 1U);
    CHECK_EQUAL(chains[3].table, "filter");
    CHECK_EQUAL(*chains[3].policy, "DROP");
  }
  CHECK(parse("").ok());
}

TEST(iptables_listing_of_all_tables_is_read_for_some) {
  const auto parsed = parse(
      "# Table `security' is incompatible, use 'nft' tool.\n*raw\n:KUBE-SVC-R - [0:0]\n-A KUBE-SVC-R -j X\nunknown\nCOMMIT\n"
      "*filter\n:INPUT DROP\nCOMMIT\n*nat\n:OUTPUT ACCEPT\n:KUBE-SVC-A - [0:0]\nCOMMIT\n");
  CHECK(parsed.ok());
  if (!parsed.ok()) return;
  std::string names;
  for (const ChainListing& chain : parsed.value()) names += chain.table + " " + chain.name + ";";
  CHECK_EQUAL(names, "nat OUTPUT;nat KUBE-SVC-A;filter INPUT;");
}

TEST(iptables_listing_counts_packets) {
  const auto parsed = parse(
      "*nat\n:OUTPUT ACCEPT [5:300]\n:KUBE-SVC-A - [0:0]\n:OTHER - [0:0]\n[7:70] -A KUBE-SVC-A -p tcp -j RETURN\n"
      "[0:0] -A KUBE-SVC-A -p udp -j RETURN\n[18446744073709551615:1] -A KUBE-SVC-A -j B\n[9:90] -A OTHER -j C\nCOMMIT\n");
  CHECK(parsed.ok());
  if (!parsed.ok()) return;
  const ChainListing& chain = parsed.value()[1];
  CHECK_EQUAL(chain.digest, digest_of({"-p tcp -j RETURN", "-p udp -j RETURN", "-j B"}));
  CHECK_EQUAL(chain.counted.size(), 2U);
  CHECK_EQUAL(chain.counted[0].rule, "-p tcp -j RETURN");
  CHECK_EQUAL(chain.counted[0].packets, 7U);
  CHECK_EQUAL(chain.counted[1].packets, UINT64_MAX);
  CHECK(parsed.value()[2].counted.empty());
}

TEST(iptables_listing_refuses_what_does_not_belong) {
  CHECK_EQUAL(complaint("hello\n"), "line 1 of the listing stands outside of a table: hello");
  CHECK_EQUAL(complaint("*nat\n-A X -j Y\nCOMMIT\n"), "line 2 of the listing is of a chain that is not declared: -A X -j Y");
  CHECK_EQUAL(complaint("*nat\n:\nCOMMIT\n"), "line 2 of the listing declares no chain: :");
  CHECK_EQUAL(complaint("*nat\n:A - [0:0]\n:A - [0:0]\nCOMMIT\n"), "line 3 of the listing declares a chain again: :A - [0:0]");
  CHECK_EQUAL(complaint("*nat\n:A - [0:0]\n-A A -j B"), "line 3 of the listing is the last, before COMMIT");
  CHECK_EQUAL(complaint("*nat\n*filter\nCOMMIT\n"), "line 2 of the listing begins a table within another: *filter");
  CHECK_EQUAL(complaint("*nat\n[\nCOMMIT\n"), "line 2 of the listing is not known: [");
  CHECK_EQUAL(complaint("# Table `nat' is incompatible, use 'nft' tool.\n"),
              "line 1 of the listing says: Table `nat' is incompatible, use 'nft' tool.");
}

TEST(iptables_complaints_name_lines) {
  CHECK_EQUAL(*complained_line("iptables-restore: line 12 failed\n"), 12U);
  CHECK_EQUAL(*complained_line("x: \nline 3: RULE_APPEND failed (Invalid argument): rule in chain B\n"), 3U);
  CHECK_EQUAL(*complained_line("inline\nError occurred at line: 4\n"), 4U);
  CHECK_EQUAL(*complained_line("COMMIT expected at line 7"), 7U);
  CHECK(!complained_line("online"));
  CHECK(!complained_line("line of text"));
  CHECK(!complained_line(""));
}

TEST(child_process_is_fed_while_it_is_read) {
  const std::string input(std::size_t{3} * 1024 * 1024, 'x');
  const Ran ran = run("cat; echo done >&2; exit 3", input);
  CHECK(ran.output == input);
  CHECK_EQUAL(ran.exit.words, "done\n");
  CHECK_EQUAL(ran.exit.code.value_or(-1), 3);
  CHECK(!ran.exit.timed_out);
}

TEST(child_process_that_reads_nothing_does_no_harm) {
  const Ran ran = run("exit 0", std::string(std::size_t{3} * 1024 * 1024, 'x'));
  CHECK_EQUAL(ran.exit.code.value_or(-1), 0);
  const Ran silent = run("exec >&- 2>&-; sleep 0.1; exit 5", "");
  CHECK_EQUAL(silent.exit.code.value_or(-1), 5);
}

TEST(child_process_is_killed_at_the_end_of_its_time) {
  const Ran ran = run("exec sleep 1000", "", milliseconds(100));
  CHECK(ran.exit.timed_out);
  CHECK(!ran.exit.code);
  const Ran closed = run("exec >&- 2>&-; exec sleep 1000", "", milliseconds(100));
  CHECK(closed.exit.timed_out);
  CHECK_EQUAL(waitpid(-1, nullptr, WNOHANG), -1);
  CHECK_EQUAL(errno, ECHILD);
}

TEST(child_process_takes_with_it_what_it_started) {
  // Its own child has the other end of the pipe that `output` reads, which therefore ends when all are gone.
  const std::string script = "sleep 1000 & echo $!; wait";
  Ran ran = run(script, "", milliseconds(300));
  // On busy processors the shell does not come to its second command in that time.
  for (auto limit = seconds(1); ran.output.empty() && limit < seconds(60); limit *= 2) ran = run(script, "", limit);
  CHECK(ran.exit.timed_out);
  const auto started = std::chrono::steady_clock::now();
  const pid_t grandchild = std::stoi(ran.output);
  // A zombie that no process waits for yet counts as gone.
  const auto gone = [&] {
    const auto status = read_file("/proc/" + std::to_string(grandchild) + "/stat");
    return !status.ok() || status.value().find(") Z ") != std::string::npos || status.value().find(") X ") != std::string::npos;
  };
  while (!gone() && std::chrono::steady_clock::now() - started < seconds(60)) poll(nullptr, 0, 5);
  CHECK(gone());
}

TEST(child_process_is_not_waited_for_by_what_it_left_running) {
  // The leftover holds both outputs; all that the program itself printed arrives.
  const Ran ran = run("sleep 1000 & echo $!; echo words >&2; exit 7", "");
  CHECK_EQUAL(ran.exit.code.value_or(-1), 7);
  CHECK(!ran.exit.timed_out);
  CHECK_EQUAL(ran.exit.words, "words\n");
  CHECK_EQUAL(kill(std::stoi(ran.output), SIGKILL), 0);
}

TEST(child_process_gets_no_descriptor_of_ours) {
  // What we were started with ourselves is in it.
  const std::string before = run("exec ls /proc/self/fd", "").output;
  const auto socket = netlink::Socket::open();
  const auto watch = nftables::Watch::open("mine", 0);
  const Descriptor file(open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  CHECK(file.open());
  CHECK_EQUAL(run("exec ls /proc/self/fd", "").output, before);
}

TEST(programs_get_little_of_our_environment) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", "bin::.:/usr/bin:", 1);
  setenv("LD_PRELOAD_PROBE", "x", 1);
  const ProcessEnvironment environment = ProcessEnvironment::current();
  setenv("PATH", path.c_str(), 1);
  unsetenv("LD_PRELOAD_PROBE");
  CHECK_EQUAL(environment.variables.at(0), "PATH=/usr/bin:/usr/local/sbin:/usr/sbin:/sbin");
  CHECK_EQUAL(environment.path.size(), 4U);
  for (const std::string& variable : environment.variables) {
    const std::string name = variable.substr(0, variable.find('='));
    CHECK(name == "PATH" || name == "LC_ALL" || name == "XTABLES_LOCKFILE" || name == "XTABLES_LIBDIR");
  }
}

TEST(iptables_words_are_cut_at_a_character) {
  CHECK_EQUAL(in_one_line("a\n\nTry `x'\nb\n"), "a; b");
  CHECK_EQUAL(in_one_line(std::string(600, 'x')), std::string(600, 'x'));
  CHECK_EQUAL(in_one_line(std::string(599, 'x') + "ä and more"), std::string(599, 'x') + "…");
}

TEST(files_are_read_whole_or_say_why_not) {
  CHECK(read_file("/proc/self/stat").ok());
  CHECK_EQUAL(read_file("/nonexistent").error(), ENOENT);
  CHECK_EQUAL(read_file("/proc/self").error(), EISDIR);
}

TEST(child_process_takes_signals_that_we_ignore) {
  const auto before = signal(SIGPIPE, SIG_IGN);
  const Ran ran = run("kill -PIPE $$; exit 0", "");
  signal(SIGPIPE, before);
  CHECK(!ran.exit.code);
  CHECK(!ran.exit.timed_out);
}

TEST(child_process_that_cannot_start_says_why) {
  const Exit exit = run_program(ProcessEnvironment{}, "/nonexistent", {}, "", seconds(1), [](std::string_view) {});
  CHECK_EQUAL(exit.failure, ENOENT);
}

TEST(programs_are_found_in_the_folders_of_the_path) {
  const ProcessEnvironment environment{{"/nonexistent", "/bin"}, {}};
  CHECK_EQUAL(environment.find("sh").value_or(""), "/bin/sh");
  CHECK(!environment.find("no-such-program"));
}

TEST(iptables_recent_lists_say_when_a_client_was_seen) {
  const auto seen = [](const std::string& list, const std::string& address, std::uint64_t moment) {
    std::istringstream stream(list);
    return seen_since(stream, address, moment);
  };
  // iptables -A OUTPUT -m recent --set --name X; cat /proc/net/xt_recent/X
  const std::string list =
      "src=10.0.0.1 ttl: 64 last_seen: 4295422319 oldest_pkt: 3 4295421819, 4295422069, 4295422319\n"
      "src=10.0.0.11 ttl: 64 last_seen: 4295422069 oldest_pkt: 2 4295421819, 4295422069\n";
  CHECK(seen(list, "10.0.0.1", 4295422319));
  CHECK(!seen(list, "10.0.0.1", 4295422320));
  CHECK(seen(list, "10.0.0.11", 4295422000));
  CHECK(!seen(list, "10.0.0.111", 0));
  CHECK(!seen("src=10.0.0.1 ttl: 64 last_seen:", "10.0.0.1", 0));
  CHECK(!seen("src=10.0.0.1 ttl: 64 last_seen: soon", "10.0.0.1", 0));
  CHECK(!seen("src=10.0.0.1", "10.0.0.1", 0));
  CHECK(!seen("", "10.0.0.1", 0));
  CHECK_EQUAL(recent_address(netlink::Bytes{10, 0, 0, 1}), "10.0.0.1");
  CHECK_EQUAL(recent_address(netlink::Bytes{0xfd, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xab, 1}),
              "fd00:0010:0000:0000:0000:0000:0000:ab01");
}

TEST(iptables_recent_lists_that_are_not_there_saw_nobody) {
  const auto found = first_remembering({"POINTSMAN-NO-SUCH-LIST"}, netlink::Bytes{10, 0, 0, 1}, 60);
  CHECK(found.ok() && !found.value());
}
