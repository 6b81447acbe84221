#include "nftables/listing.h"

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "netlink/attribute_reader.h"
#include "netlink/batch.h"
#include "netlink/message_writer.h"
#include "nftables/element_columns.h"
#include "nftables/watch.h"

namespace pointsman::nftables {

namespace {

using netlink::Done;
using netlink::Message;
using netlink::Status;

constexpr std::uint32_t kSequence = 1;
/// NFTA_TABLE_OWNER, which headers before Linux 5.12 do not know.
constexpr std::uint16_t kTableOwner = 7;

Bytes request(std::uint8_t message, std::uint16_t flags, Family family,
              const std::vector<std::pair<std::uint16_t, std::string_view>>& names) {
  netlink::MessageWriter writer;
  writer.begin_message(static_cast<std::uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | message),
                       static_cast<std::uint16_t>(NLM_F_REQUEST | flags), kSequence, static_cast<std::uint8_t>(family));
  for (const auto& [attribute, name] : names) writer.put_string(attribute, name);
  writer.end_message();
  return writer.take();
}

bool is_message(const Message& message, std::uint8_t type) {
  return message.type == (NFNL_SUBSYS_NFTABLES << 8 | type);
}

template <typename Listing>
void sort_by_name(std::vector<Listing>& listings) {
  std::sort(listings.begin(), listings.end(), [](const Listing& a, const Listing& b) { return a.name < b.name; });
}

SetListing set_listing(const Set& set) {
  return SetListing{set.name, declaration_text(set), set.key_length, set.data_length, std::nullopt};
}

using Dump = std::function<Status(const Bytes&, const std::function<void()>&, const std::function<Status(const Message&)>&)>;

/// Fills in the elements of a set, which the listing holds without.
Status read_set_elements(const Dump& dump, Family family, std::string_view table, const Set& set, SetListing& to) {
  std::optional<ColumnBuilder> builder;
  const auto restart = [&] { builder.emplace(set); };
  const Bytes message = request(NFT_MSG_GETSETELEM, NLM_F_DUMP, family,
                                {{NFTA_SET_ELEM_LIST_TABLE, table}, {NFTA_SET_ELEM_LIST_SET, set.name}});
  auto dumped = dump(message, restart, [&](const Message& answer) -> Status {
    if (!is_message(answer, NFT_MSG_NEWSETELEM)) return Done{};
    return read_elements(answer, [&builder](ListedElement&& element) { return builder->add(std::move(element)); });
  });
  if (!dumped.ok()) return dumped;
  if (builder->has_catch_all()) to.declaration += " catch-all";
  to.elements = builder->take();
  return Done{};
}

std::optional<std::string> hook_of(const Chain& chain) {
  if (!chain.hook) return std::nullopt;
  return hook_text(*chain.hook);
}

class TableReader {
 public:
  TableReader(netlink::Socket& socket, std::uint32_t own_ports, Family family, std::string_view table,
              const std::optional<std::vector<std::string>>& elements, std::size_t most_rules)
      : socket_(socket), own_ports_(own_ports), family_(family), table_(table), elements_(elements), most_rules_(most_rules) {}

  netlink::Result<std::optional<TableListing>> read() {
    auto before = ruleset_generation(socket_);
    if (!before.ok()) return before.error();
    for (int attempt = 0;; ++attempt) {
      // The generation moves at the start of a commit, and elements show one after the other: what moved it to `before` has to be over.
      if (auto over = netlink::await_batches(socket_, NFNL_SUBSYS_NFTABLES); !over.ok()) return over.error();
      auto found = table_exists();
      if (!found.ok()) return found.error();
      if (!found.value()) return std::optional<TableListing>();
      auto listed = read_all();
      // Most of the table is still to be received, and any other request on this socket would receive it first.
      if (!listed.ok() && listed.error().code == E2BIG) return listed.error();
      auto after = ruleset_generation(socket_);
      if (!after.ok()) return after.error();
      bool whole = after.value() == before.value();
      if (!whole && watch_) {
        // The notification of such a change comes at the end of its commit.
        if (auto over = netlink::await_batches(socket_, NFNL_SUBSYS_NFTABLES); !over.ok()) return over.error();
        whole = !touched();
      }
      if (whole) {
        if (!listed.ok()) return listed.error();
        return std::optional<TableListing>(std::move(listing_));
      }
      if (attempt == netlink::Socket::kMaxRestarts) {
        return netlink::system_error(EINTR, "the ruleset changed during every listing");
      }
      if (auto watching = watch(); !watching.ok()) return watching.error();
      before = std::move(after);
    }
  }

 private:
  /// From the second attempt on: the ruleset changes, but that may be other tables, of which others write all the time.
  Status watch() {
    if (watch_) return Done{};
    auto opened = Watch::open(std::string(table_), own_ports_);
    if (!opened.ok()) return opened.error();
    watch_ = std::move(opened.value());
    return Done{};
  }

  /// Whether there was an external change of the table since this was last asked.
  bool touched() {
    const ForeignChange change = watch_->poll();
    if (family_ == Family::kInet || family_ == Family::kNetdev) return change.missed;
    return change.missed || (family_ == Family::kIp ? change.ip : change.ip6);
  }

  /// While a watch reports what matters, the kernel's notice that some table changed is not reason enough to start over.
  Status dump(const Bytes& message, const std::function<void()>& restart,
              const std::function<Status(const Message&)>& on_message) {
    if (!watch_) return socket_.dump_consistent(message, restart, on_message);
    restart();
    auto dumped = socket_.dump(message, on_message);
    if (!dumped.ok() && dumped.error().code == EINTR) return Done{};
    return dumped;
  }

  /// Whether the table is there; notes whether it sleeps.
  netlink::Result<bool> table_exists() {
    dormant_ = false;
    const Bytes message = request(NFT_MSG_GETTABLE, NLM_F_ACK, family_, {{NFTA_TABLE_NAME, table_}});
    auto asked = socket_.request(message, [this](const Message& answer) -> Status {
      if (!is_message(answer, NFT_MSG_NEWTABLE)) return Done{};
      netlink::AttributeReader reader(answer.attributes());
      while (const auto attribute = reader.next()) {
        if (attribute->type != NFTA_TABLE_FLAGS) continue;
        dormant_ = (attribute->be32().value_or(0) & NFT_TABLE_F_DORMANT) != 0;
      }
      return Done{};
    });
    if (asked.ok()) return true;
    if (asked.error().code == ENOENT) return false;
    return asked.error();
  }

  Status read_all() {
    listing_ = {};
    if (auto chains = read_chains(); !chains.ok()) return chains;
    if (auto rules = read_rules(); !rules.ok()) return rules;
    if (auto sets = read_sets(); !sets.ok()) return sets;
    if (auto objects = read_objects(); !objects.ok()) return objects;
    sort_by_name(listing_.chains);
    sort_by_name(listing_.sets);
    sort_by_name(listing_.objects);
    return Done{};
  }

  Status read_chains() {
    const auto restart = [this] { listing_.chains.clear(); };
    return dump(request(NFT_MSG_GETCHAIN, NLM_F_DUMP, family_, {}), restart, [this](const Message& message) -> Status {
      if (!is_message(message, NFT_MSG_NEWCHAIN)) return Done{};
      auto chain = read_chain(message);
      if (!chain.ok()) return chain.error();
      if (chain.value().table != table_) return Done{};
      const Chain& object = chain.value().object;
      auto hook = hook_of(object);
      // The kernel calls no chain of a dormant table.
      if (hook && dormant_) *hook += " dormant";
      listing_.chains.push_back(ChainListing{object.name, std::move(hook), {}});
      return Done{};
    });
  }

  Status read_rules() {
    std::map<std::string, ChainListing*, std::less<>> chains;
    for (ChainListing& chain : listing_.chains) chains.emplace(chain.name, &chain);
    std::size_t count = 0;
    const auto restart = [this, &count] {
      count = 0;
      for (ChainListing& chain : listing_.chains) chain.rules.clear();
    };
    const Bytes message = request(NFT_MSG_GETRULE, NLM_F_DUMP, family_, {{NFTA_RULE_TABLE, table_}});
    return dump(message, restart, [this, &chains, &count](const Message& answer) -> Status {
      if (!is_message(answer, NFT_MSG_NEWRULE)) return Done{};
      if (++count > most_rules_) return netlink::system_error(E2BIG, "the table has too many rules");
      auto rule = read_rule(answer);
      if (!rule.ok()) return rule.error();
      if (rule.value().table != table_) return Done{};
      const auto chain = chains.find(rule.value().object.chain);
      if (chain != chains.end()) chain->second->rules.push_back(rule_text(rule.value().object));
      return Done{};
    });
  }

  bool wanted(const std::string& name) const {
    return !elements_ || std::find(elements_->begin(), elements_->end(), name) != elements_->end();
  }

  Status read_sets() {
    std::vector<Set> sets;
    const auto restart = [&sets] { sets.clear(); };
    const Bytes message = request(NFT_MSG_GETSET, NLM_F_DUMP, family_, {{NFTA_SET_TABLE, table_}});
    auto dumped = dump(message, restart, [this, &sets](const Message& answer) -> Status {
      if (!is_message(answer, NFT_MSG_NEWSET)) return Done{};
      auto set = read_set(answer);
      if (!set.ok()) return set.error();
      if (set.value().table == table_) sets.push_back(std::move(set.value().object));
      return Done{};
    });
    if (!dumped.ok()) return dumped;
    const Dump dump_elements = [this](const auto& asked, const auto& again, const auto& on_message) {
      return dump(asked, again, on_message);
    };
    for (const Set& set : sets) {
      listing_.sets.push_back(set_listing(set));
      if (!wanted(set.name)) continue;
      if (auto read = read_set_elements(dump_elements, family_, table_, set, listing_.sets.back()); !read.ok()) return read;
    }
    return Done{};
  }

  Status read_objects() {
    const auto restart = [this] { listing_.objects.clear(); };
    const Bytes message = request(NFT_MSG_GETOBJ, NLM_F_DUMP, family_, {{NFTA_OBJ_TABLE, table_}});
    return dump(message, restart, [this](const Message& answer) -> Status {
      if (!is_message(answer, NFT_MSG_NEWOBJ)) return Done{};
      auto object = read_object(answer);
      if (!object.ok()) return object.error();
      if (object.value() && object.value()->table == table_) listing_.objects.push_back(std::move(object.value()->object));
      return Done{};
    });
  }

  netlink::Socket& socket_;
  std::uint32_t own_ports_;
  std::unique_ptr<Watch> watch_;
  Family family_;
  std::string_view table_;
  const std::optional<std::vector<std::string>>& elements_;
  std::size_t most_rules_;
  TableListing listing_;
  bool dormant_ = false;
};

// What commands leave behind, for a table that was not there before.
class CompiledTable {
 public:
  void apply(Verb verb, const Table&) {
    if (verb == Verb::kDelete) {
      chains_.clear();
      sets_.clear();
      objects_.clear();
    }
    if (verb != Verb::kFlush) return;
    for (auto& each : chains_) each.second.rules.clear();
  }

  void apply(Verb verb, const Chain& chain) {
    if (verb == Verb::kDelete) {
      chains_.erase(chain.name);
    } else if (verb == Verb::kFlush) {
      if (const auto found = chains_.find(chain.name); found != chains_.end()) found->second.rules.clear();
    } else {
      chains_.try_emplace(chain.name, ChainListing{chain.name, hook_of(chain), {}});
    }
  }

  void apply(Verb verb, const Rule& rule) {
    if (verb == Verb::kDelete) return;
    auto& rules = chains_.try_emplace(rule.chain, ChainListing{rule.chain, std::nullopt, {}}).first->second.rules;
    rules.insert(verb == Verb::kInsert ? rules.begin() : rules.end(), rule_text(rule));
  }

  void apply(Verb verb, const Set& set) {
    if (verb == Verb::kDelete) {
      sets_.erase(set.name);
    } else if (verb != Verb::kFlush) {
      sets_.try_emplace(set.name, set_listing(set));
    }
  }

  void apply(Verb, const Counter& counter) { objects_.erase(counter.name); }

  void apply(Verb verb, const Timeout& timeout) {
    if (verb == Verb::kDelete) {
      objects_.erase(timeout.name);
    } else {
      objects_.try_emplace(timeout.name, ObjectListing{timeout.name, timeout_text(timeout)});
    }
  }

  TableListing take() {
    TableListing listing;
    for (auto& each : chains_) listing.chains.push_back(std::move(each.second));
    for (auto& each : sets_) listing.sets.push_back(std::move(each.second));
    for (auto& each : objects_) listing.objects.push_back(std::move(each.second));
    return listing;
  }

 private:
  std::map<std::string, ChainListing> chains_;
  std::map<std::string, SetListing> sets_;
  std::map<std::string, ObjectListing> objects_;
};

}  // namespace

netlink::Result<std::optional<TableListing>> list_table(netlink::Socket& socket, std::uint32_t own_ports, Family family,
                                                        std::string_view table,
                                                        const std::optional<std::vector<std::string>>& elements,
                                                        std::size_t most_rules) {
  return TableReader(socket, own_ports, family, table, elements, most_rules).read();
}

netlink::Result<std::vector<BaseChain>> list_base_chains(netlink::Socket& socket, std::string_view but) {
  std::vector<BaseChain> chains;
  for (const Family family : {Family::kIp, Family::kIp6, Family::kInet, Family::kNetdev}) {
    const std::size_t before = chains.size();
    const auto restart = [&] { chains.resize(before); };
    auto dumped = socket.dump_consistent(request(NFT_MSG_GETCHAIN, NLM_F_DUMP, family, {}), restart, [&](const Message& message) -> Status {
      if (!is_message(message, NFT_MSG_NEWCHAIN)) return Done{};
      auto chain = read_chain(message);
      if (!chain.ok()) return chain.error();
      const auto hook = hook_of(chain.value().object);
      if (hook && chain.value().table != but) chains.push_back(BaseChain{family, chain.value().table, chain.value().object.name, *hook});
      return Done{};
    });
    if (!dumped.ok()) return dumped.error();
  }
  return chains;
}

netlink::Result<std::vector<SetListing>> list_elements(netlink::Socket& socket, Family family, std::string_view table,
                                                       const std::vector<std::string>& sets) {
  // Interrupted means that something in the ruleset changed, hardly ever one of these sets.
  const Dump dump = [&socket](const auto& asked, const auto& again, const auto& on_message) -> Status {
    again();
    auto dumped = socket.dump(asked, on_message);
    if (!dumped.ok() && dumped.error().code == EINTR) return Done{};
    return dumped;
  };
  std::vector<SetListing> listings;
  for (const std::string& name : sets) {
    auto set = find_set(socket, family, table, name);
    if (!set.ok() && set.error().code == ENOENT) continue;
    if (!set.ok()) return set.error();
    SetListing listing = set_listing(set.value());
    auto read = read_set_elements(dump, family, table, set.value(), listing);
    if (!read.ok() && read.error().code == ENOENT) continue;
    if (!read.ok()) return read.error();
    listings.push_back(std::move(listing));
  }
  return listings;
}

std::optional<std::uint32_t> table_owner(netlink::Socket& socket, Family family, std::string_view table) {
  std::optional<std::uint32_t> owner;
  const Bytes message = request(NFT_MSG_GETTABLE, NLM_F_ACK, family, {{NFTA_TABLE_NAME, table}});
  auto asked = socket.request(message, [&owner](const Message& answer) -> Status {
    if (!is_message(answer, NFT_MSG_NEWTABLE)) return Done{};
    netlink::AttributeReader reader(answer.attributes());
    while (const auto attribute = reader.next()) {
      if (attribute->type == kTableOwner) owner = attribute->be32();
    }
    return Done{};
  });
  return asked.ok() ? owner : std::nullopt;
}

netlink::Result<std::uint32_t> ruleset_generation(netlink::Socket& socket) {
  std::optional<std::uint32_t> number;
  auto asked = socket.request(request(NFT_MSG_GETGEN, NLM_F_ACK, Family::kIp, {}), [&](const Message& message) -> Status {
    netlink::AttributeReader reader(message.attributes());
    while (const auto attribute = reader.next()) {
      if (attribute->type == NFTA_GEN_ID) number = attribute->be32();
    }
    return Done{};
  });
  if (!asked.ok()) return asked.error();
  if (!number) return netlink::decode_error("the kernel gave no ruleset generation");
  return *number;
}

netlink::Result<TableListing, CompileError> compile_listing(Family family, std::string_view table,
                                                    const json::Value& commands) {
  auto compiled = compile_commands(family, table, commands, [](std::string_view) { return nullptr; });
  if (!compiled.ok()) return std::move(compiled.error());
  CompiledTable listing;
  for (const Command& command : compiled.value()) {
    std::visit([&](const auto& object) { listing.apply(command.verb, object); }, command.object);
  }
  return listing.take();
}

netlink::Result<std::optional<std::string>> find_rule(netlink::Socket& socket, Family family, std::string_view table,
                                                      std::string_view chain, std::uint64_t handle) {
  netlink::MessageWriter writer;
  writer.begin_message(static_cast<std::uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETRULE),
                       static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK), kSequence, static_cast<std::uint8_t>(family));
  writer.put_string(NFTA_RULE_TABLE, table);
  writer.put_string(NFTA_RULE_CHAIN, chain);
  writer.put_be64(NFTA_RULE_HANDLE, handle);
  writer.end_message();
  std::optional<std::string> text;
  auto asked = socket.request(writer.take(), [&](const Message& answer) -> Status {
    if (!is_message(answer, NFT_MSG_NEWRULE)) return Done{};
    auto rule = read_rule(answer);
    if (!rule.ok()) return rule.error();
    text = rule_text(rule.value().object);
    return Done{};
  });
  if (asked.ok() || asked.error().code == ENOENT) return text;
  return asked.error();
}

netlink::Result<std::vector<Chain>> list_chains(netlink::Socket& socket, Family family, std::string_view table) {
  std::vector<Chain> chains;
  auto dumped = socket.dump_consistent(
      request(NFT_MSG_GETCHAIN, NLM_F_DUMP, family, {}), [&chains] { chains.clear(); },
      [&](const Message& answer) -> Status {
        if (!is_message(answer, NFT_MSG_NEWCHAIN)) return Done{};
        auto chain = read_chain(answer);
        if (!chain.ok()) return chain.error();
        if (chain.value().table == table) chains.push_back(std::move(chain.value().object));
        return Done{};
      });
  if (!dumped.ok()) return dumped.error();
  return chains;
}

netlink::Result<std::vector<Rule>> list_rules(netlink::Socket& socket, Family family, std::string_view table, std::string_view chain) {
  std::vector<Rule> rules;
  const Bytes message = request(NFT_MSG_GETRULE, NLM_F_DUMP, family, {{NFTA_RULE_TABLE, table}, {NFTA_RULE_CHAIN, chain}});
  auto dumped = socket.dump_consistent(
      message, [&rules] { rules.clear(); },
      [&](const Message& answer) -> Status {
        if (!is_message(answer, NFT_MSG_NEWRULE)) return Done{};
        auto rule = read_rule(answer);
        if (!rule.ok()) return rule.error();
        if (rule.value().table == table && rule.value().object.chain == chain) rules.push_back(std::move(rule.value().object));
        return Done{};
      });
  if (!dumped.ok()) return dumped.error();
  return rules;
}

netlink::Result<Set> find_set(netlink::Socket& socket, Family family, std::string_view table, std::string_view name) {
  std::optional<Set> found;
  const Bytes message =
      request(NFT_MSG_GETSET, NLM_F_ACK, family, {{NFTA_SET_TABLE, table}, {NFTA_SET_NAME, name}});
  auto asked = socket.request(message, [&](const Message& answer) -> Status {
    if (!is_message(answer, NFT_MSG_NEWSET)) return Done{};
    auto set = read_set(answer);
    if (!set.ok()) return set.error();
    found = std::move(set.value().object);
    return Done{};
  });
  if (!asked.ok()) return asked.error();
  if (!found) return netlink::decode_error("the kernel gave no set");
  return *std::move(found);
}

}  // namespace pointsman::nftables
