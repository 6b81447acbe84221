// Mutates sample commands, kernel answers and iptables listings and runs them through compilers, encoders and parsers; the sanitizers judge. The same seed
// makes the same inputs in the same order.

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "accounting/objects.h"
#include "conntrack/flow.h"
#include "ipset/message.h"
#include "iptables/programs.h"
#include "iptables/save_parser.h"
#include "ipvs/message.h"
#include "netlink/batch.h"
#include "nftables/decode.h"
#include "nftables/element_columns.h"
#include "nftables/trace.h"
#include "nftables/transaction.h"
#include "route/message.h"
#include "route/watch.h"
#include "nftables/watch.h"
#include "test/samples.h"

namespace {

using namespace pointsman;
using namespace pointsman::nftables;

class Mutator {
 public:
  explicit Mutator(std::uint32_t seed) : random_(seed) {}

  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  // Puts a string or number of one sample in the place of one of another: stays JSON, and often compiles.
  std::string exchange(std::string text, const std::vector<std::string>& words) {
    for (std::size_t count = 1 + below(2); count > 0; --count) {
      const auto places = literals(text);
      if (places.empty()) break;
      const auto [start, length] = places[below(places.size())];
      text.replace(start, length, words[below(words.size())]);
    }
    return text;
  }

  // Start and length of every string and number.
  static std::vector<std::pair<std::size_t, std::size_t>> literals(const std::string& text) {
    constexpr const char* kDigits = "-0123456789";
    std::vector<std::pair<std::size_t, std::size_t>> found;
    for (std::size_t at = 0; at < text.size(); ++at) {
      const std::size_t start = at;
      if (text[at] == '"') {
        at = text.find('"', at + 1);
        if (at == std::string::npos) break;
      } else if (std::string_view(kDigits).find(text[at]) != std::string_view::npos) {
        at = std::min(text.find_first_not_of(kDigits, at), text.size()) - 1;
      } else {
        continue;
      }
      found.emplace_back(start, at + 1 - start);
    }
    return found;
  }

  template <typename Sequence>
  Sequence mutate(Sequence from) {
    for (std::size_t count = 1 + below(4); count > 0; --count) mutate_once(from);
    return from;
  }

 private:
  template <typename Sequence>
  void mutate_once(Sequence& bytes) {
    using Unit = typename Sequence::value_type;
    if (bytes.empty()) return;
    const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size()));
    switch (below(6)) {
      case 0:
        *at = static_cast<Unit>(random_());
        break;
      case 1:
        *at = static_cast<Unit>(static_cast<unsigned char>(*at) ^ 1U << below(8));
        break;
      case 2:
        bytes.erase(at);
        break;
      case 3:
        bytes.insert(at, static_cast<Unit>(random_()));
        break;
      case 4:
        bytes.erase(at, bytes.end());
        break;
      default: {
        // A stretch of the input once more, somewhere else.
        const std::size_t start = below(bytes.size());
        const std::size_t length = below(std::min<std::size_t>(bytes.size() - start, 40));
        const Sequence stretch(bytes.begin() + static_cast<std::ptrdiff_t>(start),
                               bytes.begin() + static_cast<std::ptrdiff_t>(start + length));
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size())), stretch.begin(), stretch.end());
      }
    }
  }

  std::mt19937 random_;
};

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

Set sample_set() {
  Set set;
  set.flags = NFT_SET_MAP | NFT_SET_INTERVAL;
  set.key_length = 12;
  set.data_type = static_cast<std::uint32_t>(NFT_DATA_VERDICT);
  return set;
}

// Everything that reads what a kernel might send.
void read_answer(ByteView datagram) {
  ChangeReader changes("t");
  changes.read(datagram);
  static_cast<void>(changes.take().any());
  TraceEvents trace;
  read_trace(datagram, trace);
  static_cast<void>(trace.any());
  route::Change links;
  route::read_change(datagram, [](std::uint32_t) { return std::string("lo"); }, links);
  const Set set = sample_set();
  ColumnBuilder builder(set);
  netlink::MessageReader reader(datagram);
  while (const auto message = reader.next()) {
    static_cast<void>(netlink::parse_acknowledgement(*message).ok());
    if (const auto rule = read_rule(*message); rule.ok()) static_cast<void>(rule_text(rule.value().object));
    if (const auto chain = read_chain(*message); chain.ok() && chain.value().object.hook) {
      static_cast<void>(hook_text(*chain.value().object.hook));
    }
    if (const auto read = read_set(*message); read.ok()) static_cast<void>(declaration_text(read.value().object));
    static_cast<void>(read_elements(*message, [&](ListedElement&& element) -> netlink::Status {
      static_cast<void>(builder.add(std::move(element)).ok());
      return netlink::Done{};
    }).ok());
    static_cast<void>(element_at(datagram, 4 * message->sequence));
    static_cast<void>(ipvs::decode_service(*message).ok());
    static_cast<void>(ipvs::decode_destination(*message, 2).ok());
    static_cast<void>(ipvs::decode_timeouts(*message).ok());
    static_cast<void>(ipvs::decode_family(*message).ok());
    static_cast<void>(ipset::decode_name(*message).ok());
    ipset::Listing listing;
    static_cast<void>(ipset::decode_list(*message, listing).ok());
    if (const auto answer = netlink::parse_acknowledgement(*message); answer.ok()) static_cast<void>(ipset::failed_element(answer.value()));
    static_cast<void>(accounting::decode_packets(*message).ok());
    static_cast<void>(route::decode_address(*message).ok());
    static_cast<void>(conntrack::decode_translated(*message).ok());
  }
  static_cast<void>(builder.take());
  bool given = false;
  const auto receive = [&]() -> netlink::Result<ByteView> {
    if (given) return netlink::system_error(11, "empty");
    given = true;
    return datagram;
  };
  static_cast<void>(netlink::read_verdict(receive, 3).ok());
}

// Whatever compiles must encode, and its rules must come back as the compiler printed them.
Bytes run_commands(const std::string& text) {
  const auto parsed = json::parse(text);
  if (!parsed.ok()) return {};
  const json::Value& commands = parsed.value();
  const Transaction transaction{Family::kIp, "t", {Commands{commands}}};
  const auto encoded = EncodedTransaction::encode(transaction);
  const auto compiled = compile_commands(Family::kIp, "t", commands, [](auto) { return nullptr; });
  static_cast<void>(compile_listing(Family::kIp, "t", commands).ok());
  if (!compiled.ok()) {
    require(!encoded.ok(), "encoded what does not compile");
    return {};
  }
  if (!encoded.ok()) return {};
  std::vector<std::string> printed;
  for (const Command& command : compiled.value()) {
    const auto* rule = std::get_if<Rule>(&command.object);
    if (rule != nullptr && command.verb != Verb::kDelete) printed.push_back(rule_text(*rule));
  }
  std::size_t next = 0;
  netlink::MessageReader reader(encoded.value().bytes());
  while (const auto message = reader.next()) {
    if (message->type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE)) continue;
    const auto rule = read_rule(*message);
    require(rule.ok() && next < printed.size() && rule_text(rule.value().object) == printed[next], "a rule changed in transit");
    ++next;
  }
  require(!reader.malformed() && next == printed.size(), "the batch is malformed");
  return Bytes(encoded.value().bytes().begin(), encoded.value().bytes().end());
}

/// However a listing is cut into pieces, it reads alike.
void read_save(const std::string& text, std::size_t piece) {
  iptables::SaveParser whole({"KUBE-"}, {"nat", "filter"});
  iptables::SaveParser pieces({"KUBE-"}, {"nat", "filter"});
  whole.feed(text);
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(std::min(piece, rest.size()))) pieces.feed(rest.substr(0, piece));
  const auto one = whole.finish();
  const auto other = pieces.finish();
  require(one.ok() == other.ok(), "pieces of a listing read otherwise than the whole");
  if (one.ok()) require(one.value().size() == other.value().size(), "pieces of a listing have other chains");
  static_cast<void>(iptables::complained_line(text));
}

constexpr const char* kSave =
    "# Generated\n*nat\n:OUTPUT ACCEPT [5:300]\n:KUBE-SVC-A - [0:0]\n-A OUTPUT -m comment --comment \"a \\\" b\" -j KUBE-SVC-A\n"
    "[1:60] -A KUBE-SVC-A -j RETURN\nCOMMIT\n# Completed, line 12 failed\n*filter\n:INPUT DROP [0:0]\nCOMMIT\n";

Bytes sample_elements() {
  Elements elements;
  elements.set = "services";
  elements.count = 3;
  elements.key_length = 12;
  elements.keys = Bytes(36, 7);
  elements.key_ends = Bytes(36, 9);
  elements.goto_chains = {"a", "b", "c"};
  elements.comments = {"one", std::nullopt, "three"};
  const Transaction transaction{Family::kIp, "t", {std::move(elements)}};
  const auto encoded = EncodedTransaction::encode(transaction);
  return Bytes(encoded.value().bytes().begin(), encoded.value().bytes().end());
}

/// What is sent, which is what the kernel answers with too.
std::vector<Bytes> sample_answers() {
  const ipvs::Service service{2, 6, {10, 96, 0, 1}, 443, 0};
  netlink::MessageWriter services;
  ipvs::encode_service(services, 30, 1, ipvs::Verb::kNew, service, {"rr", 1, 10800, 32});
  netlink::MessageWriter destinations;
  ipvs::encode_destination(destinations, 30, 1, ipvs::Verb::kNew, service, Bytes{10, 0, 0, 1, 0, 80}, 1);
  netlink::MessageWriter sets;
  ipset::encode_create(sets, 1, {"KUBE-CLUSTER-IP", ipset::Type::kIpPort, 2, 1024, 65536, true, true, {}});
  const ipset::Layout layout = ipset::layout_of(ipset::Type::kIpPort, 2);
  ipset::encode_elements(sets, 1, {true, "KUBE-CLUSTER-IP", ipset::Type::kIpPort, 2, Bytes(3 * layout.length(), 7), {"a", {}, "b"}}, 0);
  netlink::MessageWriter addresses;
  route::encode_address(addresses, 1, true, 5, Bytes{10, 96, 0, 1});
  netlink::MessageWriter flows;
  conntrack::encode_delete(flows, 1, conntrack::Family::kIPv6, Bytes(conntrack::record_length(conntrack::Family::kIPv6), 7));
  return {flows.take(), services.take(), destinations.take(), sets.take(), addresses.take(), route::encode_new_dummy(1, "kube-ipvs0")};
}

}  // namespace

int main(int count, char** arguments) {
  const int seconds = count > 1 ? std::atoi(arguments[1]) : 20;
  const auto seed = static_cast<std::uint32_t>(count > 2 ? std::atoi(arguments[2]) : 1);
  Mutator mutator(seed);
  std::vector<std::string> texts{samples::document(samples::objects())};
  for (const std::string& rule : samples::rules()) texts.push_back(samples::document(samples::rule(rule)));
  std::vector<Bytes> answers = sample_answers();
  answers.push_back(sample_elements());
  for (const std::string& text : texts) answers.push_back(run_commands(text));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  std::vector<std::string> words{"4294967295", "-1", "0", "\"@m\"", "\"*\"", "\"tcp\"", "\"::1\""};
  for (const std::string& text : texts) {
    for (const auto& [start, length] : Mutator::literals(text)) words.push_back(text.substr(start, length));
  }
  std::uint64_t runs = 0;
  std::uint64_t compiled = 0;
  while (std::chrono::steady_clock::now() < end) {
    for (int round = 0; round < 50; ++round, ++runs) {
      const std::string& text = texts[mutator.below(texts.size())];
      const Bytes batch = run_commands(round % 2 == 0 ? mutator.mutate(text) : mutator.exchange(text, words));
      if (!batch.empty()) ++compiled;
      read_save(mutator.mutate(std::string(kSave)), 1 + mutator.below(9));
      read_answer(mutator.mutate(answers[mutator.below(answers.size())]));
    }
  }
  std::printf("seed %u: %llu inputs, %llu of them compiled\n", seed, static_cast<unsigned long long>(runs),
              static_cast<unsigned long long>(compiled));
  return EXIT_SUCCESS;
}
