#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/xt_comment.h>
#include <linux/netfilter/xt_conntrack.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <sstream>

#include "iptables/by_chain.h"
#include "iptables/child_process.h"
#include "base/descriptor.h"
#include "iptables/digest.h"
#include "iptables/file.h"
#include "iptables/programs.h"
#include "iptables/recent.h"
#include "iptables/render.h"
#include "iptables/rules_of_nft.h"
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
    CHECK_EQUAL(*chains[1].digest, digest_of({"-p tcp -j RETURN"}));
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
  CHECK_EQUAL(*chain.digest, digest_of({"-p tcp -j RETURN", "-p udp -j RETURN", "-j B"}));
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
}

TEST(iptables_listing_names_tables_that_the_program_cannot_list) {
  SaveParser parser({}, {"nat", "filter"});
  parser.feed("# Table `nat' is incompatible, use 'nft' tool.\n*filter\n:INPUT DROP\nCOMMIT\n"
              "# Table `filter' contains incompatible base-chains, use 'nft' tool to list them.\n");
  const auto parsed = parser.finish();
  CHECK(parsed.ok() && parsed.value().size() == 1);
  CHECK(parser.refused() == std::vector<std::string>{"nat"});
  CHECK(parser.complete() == std::vector<std::string>{"filter"});
}

TEST(iptables_listing_that_breaks_off_has_the_names_of_its_last_table) {
  SaveParser parser({"A"}, {"nat", "filter"});
  parser.feed("*filter\n:A - [0:0]\n-A A -j DROP\nCOMMIT\n*nat\n:OUTPUT ACCEPT [0:0]\n:B - [0:0]\n-A OUTPUT -j B\n-A OUTPUT");
  const auto parsed = parser.break_off();
  CHECK(parsed.ok());
  if (!parsed.ok()) return;
  CHECK_EQUAL(parsed.value().size(), 3U);
  CHECK(parsed.value()[0].name == "OUTPUT" && !parsed.value()[0].digest && !parsed.value()[0].rules);
  CHECK_EQUAL(*parsed.value()[2].digest, digest_of({"-j DROP"}));
}

/// iptables-restore with chains of a few rules, of which it cannot list those that are `?`. @param names_chain whether it says which chain it is.
RunRestore restore_with(const std::vector<std::pair<std::string, std::vector<std::string>>>& chains, bool names_chain, int& runs) {
  return [&chains, names_chain, &runs](std::string_view input, const std::function<void(std::string_view)>& output) {
    ++runs;
    Exit exit;
    std::istringstream lines{std::string(input)};
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string command;
      std::string name;
      std::size_t number = 0;
      words >> command >> name >> number;
      if (command != "-S") continue;
      for (const auto& [chain, rules] : chains) {
        if (chain != name) continue;
        const bool is_refused = std::ranges::find(rules, "?") != rules.end();
        if (is_refused && names_chain) {
          exit.words = "chain `" + name + "' in table `nat' is incompatible";
          exit.code = 1;
          return exit;
        }
        if (number == 0) output("-N " + name + "\n");
        for (std::size_t index = number == 0 ? 0 : number - 1; index < (number == 0 ? rules.size() : std::min(number, rules.size())); ++index) {
          if (rules[index] == "?") {
            output("-A " + name);
            exit.code = 3;
            return exit;
          }
          output("-A " + name + " " + rules[index] + "\n");
        }
      }
    }
    exit.code = 0;
    return exit;
  };
}

TEST(iptables_chains_are_listed_one_by_one_past_those_that_cannot_be) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> chains = {
      {"A", {"-j B"}}, {"B", {"-j C", "?"}}, {"C", {}}, {"D", {"?"}}, {"E", {"-j F", "-j G"}}};
  for (const bool names_chain : {false, true}) {
    int runs = 0;
    const auto listed = list_by_chain(restore_with(chains, names_chain, runs), Table::kNat, {"A", "B", "C", "D", "E"}, {"E"});
    CHECK(listed.ok());
    if (!listed.ok()) return;
    std::string names;
    for (const ChainListing& chain : listed.value()) names += chain.name;
    CHECK_EQUAL(names, "ACE");
    CHECK_EQUAL(*listed.value()[2].digest, digest_of({"-j F", "-j G"}));
    CHECK_EQUAL(listed.value()[2].rules->at(1), "-j G");
    CHECK_EQUAL(runs, 3);
  }
  const RunRestore locked = [](std::string_view, const std::function<void(std::string_view)>&) {
    Exit exit;
    exit.code = 4;
    return exit;
  };
  CHECK(!list_by_chain(locked, Table::kNat, {"A"}, {}).ok());
  CHECK(!list_by_rule(locked, Table::kNat, "A", "?").ok());
}

TEST(iptables_rules_are_listed_one_by_one_past_those_that_cannot_be) {
  std::vector<std::string> rules(70, "-j B");
  rules[0] = rules[66] = "?";
  const std::vector<std::pair<std::string, std::vector<std::string>>> chains = {{"A", rules}};
  int runs = 0;
  const auto listed = list_by_rule(restore_with(chains, false, runs), Table::kNat, "A", "?");
  CHECK(listed.ok() && listed.value() == rules);
}

nftables::Expression extension(const char* kind, const char* name, std::uint32_t revision, netlink::ByteView info) {
  netlink::MessageWriter writer;
  writer.begin_message(0, 0, 0, 0);
  const std::size_t start = writer.bytes().size();
  writer.put_string(NFTA_MATCH_NAME, name);
  writer.put_be32(NFTA_MATCH_REV, revision);
  writer.put_bytes(NFTA_MATCH_INFO, info);
  writer.end_message();
  const netlink::ByteView attributes = writer.bytes().subspan(start);
  nftables::Expression expression{kind, {}, {}};
  expression.unknown = netlink::Bytes(attributes.begin(), attributes.end());
  return expression;
}

TEST(iptables_jumps_among_rules_of_nft_are_spelled_as_iptables_does) {
  const auto verdict = [](std::int32_t code, const char* chain) {
    return nftables::Expression{"immediate", {{NFTA_IMMEDIATE_DATA, nftables::Verdict{code, chain}}}, {}};
  };
  netlink::Bytes text(XT_MAX_COMMENT_LEN);
  std::ranges::copy(std::string("a \"b\""), text.begin());
  const nftables::Expression comment = extension("match", "comment", 0, text);
  xt_conntrack_mtinfo3 info{};
  info.match_flags = XT_CONNTRACK_STATE;
  info.state_mask = XT_CONNTRACK_STATE_BIT(IP_CT_NEW);
  const auto bytes_of = [](const xt_conntrack_mtinfo3& of) { return netlink::ByteView(reinterpret_cast<const std::uint8_t*>(&of), sizeof of); };
  const nftables::Expression is_new = extension("match", "conntrack", 3, bytes_of(info));
  info.state_mask = XT_CONNTRACK_STATE_INVALID;
  const nftables::Expression is_invalid = extension("match", "conntrack", 3, bytes_of(info));
  const nftables::Expression counter{"counter", {}, {}};
  const nftables::Expression lookup{"lookup", {}, {}};
  const auto spelled = [](std::vector<nftables::Expression> expressions) {
    nftables::Rule rule;
    rule.expressions = std::move(expressions);
    return spelling_of(rule);
  };
  CHECK_EQUAL(spelled({is_new, comment, counter, verdict(NFT_JUMP, "X")}), "-m conntrack --ctstate NEW -m comment --comment \"a \\\"b\\\"\" -j X");
  CHECK_EQUAL(spelled({counter, verdict(NF_ACCEPT, "")}), "-j ACCEPT");
  CHECK_EQUAL(spelled({verdict(NFT_GOTO, "X")}), "-g X");
  CHECK_EQUAL(spelled({lookup, verdict(NF_ACCEPT, "")}), "(not of iptables) -j ACCEPT");
  CHECK_EQUAL(spelled({is_invalid, verdict(NFT_JUMP, "X")}), "(not of iptables) -j X");
  CHECK_EQUAL(spelled({extension("target", "REJECT", 0, text)}), "-j REJECT");
  CHECK_EQUAL(spelled({lookup}), "(not of iptables)");
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
