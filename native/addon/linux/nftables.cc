#include "addon/linux/subsystems.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <array>
#include <limits>
#include <memory>

#include "addon/argument.h"
#include "addon/async_call.h"
#include "addon/functions.h"
#include "addon/linux/environment.h"
#include "addon/linux/json_argument.h"
#include "addon/linux/netlink_error.h"
#include "addon/linux/nft_failure.h"
#include "addon/linux/polled_subject.h"
#include "addon/linux/simple_call.h"
#include "addon/linux/trace.h"
#include "addon/linux/transaction_argument.h"
#include "addon/linux/watch.h"
#include "addon/values.h"
#include "nftables/listing.h"
#include "nftables/transaction.h"

namespace pointsman::addon {

namespace {

constexpr const char* kTransaction = "nft transaction";
constexpr const char* kListTable = "nft list";
constexpr const char* kElements = "nft elements";
constexpr const char* kGeneration = "nft generation";
constexpr const char* kBaseChains = "nft base chains";
constexpr const char* kCompile = "nft compile";
constexpr const char* kRule = "nft rule";
constexpr const char* kRelease = "nft release memory";

Napi::Value bytes_or_null(Napi::Env env, const std::optional<netlink::Bytes>& bytes) {
  if (!bytes) return env.Null();
  return to_uint8_array(env, *bytes);
}

Napi::Value comments(Napi::Env env, const std::vector<std::optional<std::string>>& from) {
  if (from.empty()) return env.Null();
  const Napi::Array array = Napi::Array::New(env, from.size());
  for (std::uint32_t index = 0; index < from.size(); ++index) array.Set(index, text_or_null(env, from[index]));
  return array;
}

/// An array with the same few strings again and again.
Napi::Value verdicts_value(Napi::Env env, const std::optional<nftables::VerdictColumn>& column) {
  if (!column) return env.Null();
  std::vector<Napi::Value> texts;
  for (const std::string& text : column->texts) texts.push_back(Napi::String::New(env, text));
  const Napi::Array array = Napi::Array::New(env, column->indexes.size());
  for (std::uint32_t index = 0; index < column->indexes.size(); ++index) array.Set(index, texts[column->indexes[index]]);
  return array;
}

Napi::Value elements_value(Napi::Env env, const std::optional<nftables::ElementColumns>& columns) {
  if (!columns) return env.Null();
  Napi::Object value = Napi::Object::New(env);
  value.Set("count", Napi::Number::New(env, static_cast<double>(columns->count)));
  value.Set("keys", to_uint8_array(env, columns->keys));
  value.Set("keyEnds", bytes_or_null(env, columns->key_ends));
  value.Set("data", bytes_or_null(env, columns->data));
  value.Set("verdicts", verdicts_value(env, columns->verdicts));
  value.Set("comments", comments(env, columns->comments));
  value.Set("packets", columns->packets.empty() ? env.Null() : numbers_value(env, columns->packets));
  return value;
}

Napi::Value sets_value(Napi::Env env, const std::vector<nftables::SetListing>& listings) {
  const Napi::Array sets = Napi::Array::New(env, listings.size());
  for (std::uint32_t index = 0; index < listings.size(); ++index) {
    const nftables::SetListing& set = listings[index];
    const Napi::HandleScope scope(env);
    Napi::Object value = Napi::Object::New(env);
    value.Set("name", Napi::String::New(env, set.name));
    value.Set("declaration", Napi::String::New(env, set.declaration));
    value.Set("keyLength", Napi::Number::New(env, set.key_length));
    value.Set("dataLength", Napi::Number::New(env, set.data_length));
    value.Set("elements", elements_value(env, set.elements));
    sets.Set(index, value);
  }
  return sets;
}

Napi::Value objects_value(Napi::Env env, const std::vector<nftables::ObjectListing>& listings) {
  const Napi::Array objects = Napi::Array::New(env, listings.size());
  for (std::uint32_t index = 0; index < listings.size(); ++index) {
    Napi::Object value = Napi::Object::New(env);
    value.Set("name", Napi::String::New(env, listings[index].name));
    value.Set("declaration", Napi::String::New(env, listings[index].declaration));
    objects.Set(index, value);
  }
  return objects;
}

Napi::Value table_value(Napi::Env env, const nftables::TableListing& listing) {
  const Napi::Array chains = Napi::Array::New(env, listing.chains.size());
  for (std::uint32_t index = 0; index < listing.chains.size(); ++index) {
    const nftables::ChainListing& chain = listing.chains[index];
    const Napi::HandleScope scope(env);
    Napi::Object value = Napi::Object::New(env);
    value.Set("name", Napi::String::New(env, chain.name));
    value.Set("hook", text_or_null(env, chain.hook));
    value.Set("rules", texts_value(env, chain.rules));
    chains.Set(index, value);
  }
  Napi::Object value = Napi::Object::New(env);
  value.Set("chains", chains);
  value.Set("sets", sets_value(env, listing.sets));
  value.Set("objects", objects_value(env, listing.objects));
  return value;
}

Napi::Value throw_native(Napi::Env env, const NativeError& error) {
  const Napi::Value object = to_error_object(env, error);
  if (!object.IsEmpty()) napi_throw(env, object);
  return env.Undefined();
}

constexpr std::size_t kLargeBatch = std::size_t{1024} * 1024;

/// A full load or listing leaves tens of megabytes of freed memory that glibc would keep for itself. Giving it back takes a millisecond or more,
/// and no call waits for it: it begins when the call that left it is answered.
class ReleaseCall final : public AsyncCall {
 private:
  void execute() override {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
  }

  Napi::Value finish(Napi::Env env) override { return env.Undefined(); }
};

void release_memory(Napi::Env env) { AsyncCall::start(env, kRelease, std::make_unique<ReleaseCall>()); }

class TransactCall final : public AsyncCall {
 public:
  TransactCall(std::shared_ptr<netlink::SocketPool> sockets, std::shared_ptr<nftables::Watches> watches,
               nftables::Transaction transaction)
      : sockets_(std::move(sockets)), watches_(std::move(watches)), transaction_(std::move(transaction)) {}

 private:
  void execute() override {
    auto sent = nftables::transact(transaction_, *sockets_, *watches_);
    if (!sent.ok()) return fail(from_failure(sent.error(), kTransaction));
    ack_ = sent.value();
    transaction_ = {};
  }

  Napi::Value finish(Napi::Env env) override {
    Napi::Object value = Napi::Object::New(env);
    value.Set("messages", Napi::Number::New(env, ack_.messages));
    value.Set("bytes", Napi::Number::New(env, static_cast<double>(ack_.bytes)));
    if (ack_.bytes > kLargeBatch) release_memory(env);
    return value;
  }

  std::shared_ptr<netlink::SocketPool> sockets_;
  std::shared_ptr<nftables::Watches> watches_;
  nftables::Transaction transaction_;
  nftables::Ack ack_;
};

class ListTableCall final : public AsyncCall {
 public:
  ListTableCall(std::shared_ptr<netlink::SocketPool> sockets, nftables::Family family, std::string table,
           std::optional<std::vector<std::string>> elements, std::size_t most_rules)
      : sockets_(std::move(sockets)),
        family_(family),
        table_(std::move(table)),
        elements_(std::move(elements)),
        most_rules_(most_rules) {}

 private:
  void execute() override {
    auto socket = sockets_->take();
    if (!socket.ok()) return fail(from_netlink(socket.error(), kListTable));
    auto listed = nftables::list_table(socket.value(), sockets_->port_bits(), family_, table_, elements_, most_rules_);
    if (!listed.ok()) return fail(from_netlink(listed.error(), kListTable));
    sockets_->give_back(std::move(socket.value()));
    listing_ = std::move(listed.value());
  }

  Napi::Value finish(Napi::Env env) override {
    if (!listing_) return env.Null();
    const Napi::Value value = table_value(env, *listing_);
    listing_.reset();
    release_memory(env);
    return value;
  }

  std::shared_ptr<netlink::SocketPool> sockets_;
  nftables::Family family_;
  std::string table_;
  std::optional<std::vector<std::string>> elements_;
  std::size_t most_rules_;
  std::optional<nftables::TableListing> listing_;
};

class ElementsCall final : public AsyncCall {
 public:
  ElementsCall(std::shared_ptr<netlink::SocketPool> sockets, nftables::Family family, std::string table,
               std::vector<std::string> sets)
      : sockets_(std::move(sockets)), family_(family), table_(std::move(table)), sets_(std::move(sets)) {}

 private:
  void execute() override {
    auto socket = sockets_->take();
    if (!socket.ok()) return fail(from_netlink(socket.error(), kElements));
    auto listed = nftables::list_elements(socket.value(), family_, table_, sets_);
    if (!listed.ok()) return fail(from_netlink(listed.error(), kElements));
    sockets_->give_back(std::move(socket.value()));
    listings_ = std::move(listed.value());
  }

  Napi::Value finish(Napi::Env env) override { return sets_value(env, listings_); }

  std::shared_ptr<netlink::SocketPool> sockets_;
  nftables::Family family_;
  std::string table_;
  std::vector<std::string> sets_;
  std::vector<nftables::SetListing> listings_;
};

class GenerationCall final : public AsyncCall {
 public:
  explicit GenerationCall(std::shared_ptr<netlink::SocketPool> sockets) : sockets_(std::move(sockets)) {}

 private:
  void execute() override {
    auto socket = sockets_->take();
    if (!socket.ok()) return fail(from_netlink(socket.error(), kGeneration));
    const auto number = nftables::ruleset_generation(socket.value());
    if (!number.ok()) return fail(from_netlink(number.error(), kGeneration));
    sockets_->give_back(std::move(socket.value()));
    generation_ = number.value();
  }

  Napi::Value finish(Napi::Env env) override { return Napi::Number::New(env, generation_); }

  std::shared_ptr<netlink::SocketPool> sockets_;
  std::uint32_t generation_ = 0;
};

/// The ruleset's generation.
class PolledGeneration final : public polling::Subject {
 public:
  PolledGeneration(std::shared_ptr<netlink::SocketPool> sockets, std::uint32_t seen) : sockets_(std::move(sockets)), seen_(seen) {}

  bool is_changed() override {
    auto socket = sockets_->take();
    if (!socket.ok()) return true;
    const auto number = nftables::ruleset_generation(socket.value());
    if (!number.ok()) return true;
    sockets_->give_back(std::move(socket.value()));
    return number.value() != seen_;
  }

 private:
  std::shared_ptr<netlink::SocketPool> sockets_;
  std::uint32_t seen_;
};

/// A family whose tables are only read.
nftables::Family read_family_argument(const Argument& at) {
  constexpr std::array kFamilies{nftables::Family::kIp, nftables::Family::kIp6, nftables::Family::kInet, nftables::Family::kNetdev};
  return kFamilies[at.word({"ip", "ip6", "inet", "netdev"})];
}

Napi::Value nft_compile(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Misuse misuse(env);
  const nftables::Family family = family_argument(Argument(info[0], "family", misuse));
  const std::string table = name_argument(Argument(info[1], "table", misuse));
  const nftables::json::Value commands = json_argument(Argument(info[2], "commands", misuse));
  if (misuse.failed()) return misuse.raise();
  const auto compiled = nftables::compile_listing(family, table, commands);
  if (compiled.ok()) return table_value(env, compiled.value());
  NativeError error;
  error.code = "ERR_NFT_JSON";
  error.operation = kCompile;
  error.reason = compiled.error().message;
  return throw_native(env, error);
}

Napi::Value nft_encode(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Misuse misuse(env);
  const nftables::Transaction transaction = transaction_argument(Argument(info[0], "", misuse));
  if (misuse.failed()) return misuse.raise();
  const auto encoded = nftables::EncodedTransaction::encode(transaction);
  if (!encoded.ok()) return throw_native(env, from_failure(encoded.error(), kTransaction));
  return to_uint8_array(env, encoded.value().bytes());
}

Napi::Value nft_transact(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Misuse misuse(env);
  nftables::Transaction transaction = transaction_argument(Argument(info[0], "", misuse));
  if (misuse.failed()) return misuse.raise();
  return AsyncCall::start(env, kTransaction,
                          std::make_unique<TransactCall>(sockets_of(env), watches_of(env), std::move(transaction)));
}

Napi::Value nft_list(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Misuse misuse(env);
  const nftables::Family family = read_family_argument(Argument(info[0], "family", misuse));
  std::string table = name_argument(Argument(info[1], "table", misuse));
  std::optional<std::vector<std::string>> elements;
  const Argument names(info[2], "elements", misuse);
  if (!names.is_null()) {
    elements.emplace();
    for (const Argument& name : names.items()) elements->push_back(name_argument(name));
  }
  const Argument most(info[3], "mostRules", misuse);
  const std::size_t most_rules = most.is_undefined() ? SIZE_MAX : most.integer(0, UINT32_MAX);
  if (misuse.failed()) return misuse.raise();
  return AsyncCall::start(env, kListTable,
                          std::make_unique<ListTableCall>(sockets_of(env), family, std::move(table), std::move(elements), most_rules));
}

Napi::Value nft_elements(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Misuse misuse(env);
  const nftables::Family family = read_family_argument(Argument(info[0], "family", misuse));
  std::string table = name_argument(Argument(info[1], "table", misuse));
  std::vector<std::string> sets;
  for (const Argument& name : Argument(info[2], "sets", misuse).items()) sets.push_back(name_argument(name));
  if (misuse.failed()) return misuse.raise();
  return AsyncCall::start(
      env, kElements, std::make_unique<ElementsCall>(sockets_of(env), family, std::move(table), std::move(sets)));
}

Napi::Value base_chains_value(Napi::Env env, const std::vector<nftables::BaseChain>& chains) {
  const Napi::Array array = Napi::Array::New(env, chains.size());
  for (std::uint32_t index = 0; index < chains.size(); ++index) {
    const Napi::HandleScope scope(env);
    Napi::Object value = Napi::Object::New(env);
    value.Set("family", Napi::String::New(env, nftables::family_name(chains[index].family)));
    value.Set("table", Napi::String::New(env, chains[index].table));
    value.Set("chain", Napi::String::New(env, chains[index].chain));
    value.Set("hook", Napi::String::New(env, chains[index].hook));
    array.Set(index, value);
  }
  return array;
}

Napi::Value nft_base_chains(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const std::string but = name_argument(Argument(info[0], "but", misuse));
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<std::vector<nftables::BaseChain>>::start(
      info, kBaseChains, sockets_of(info.Env()),
      [but](netlink::Socket& socket) { return nftables::list_base_chains(socket, but); }, base_chains_value);
}

Napi::Value rule_value(Napi::Env env, const std::optional<std::string>& rule) { return text_or_null(env, rule); }

Napi::Value nft_rule(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const nftables::Family family = read_family_argument(Argument(info[0], "family", misuse));
  const std::string table = name_argument(Argument(info[1], "table", misuse));
  const std::string chain = name_argument(Argument(info[2], "chain", misuse));
  const std::uint32_t handle = Argument(info[3], "handle", misuse).integer(1, std::numeric_limits<std::uint32_t>::max());
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<std::optional<std::string>>::start(
      info, kRule, sockets_of(info.Env()),
      [=](netlink::Socket& socket) { return nftables::find_rule(socket, family, table, chain, handle); }, rule_value);
}

Napi::Value nft_generation(const Napi::CallbackInfo& info) {
  // The kernel takes no lock for the answer (NFNL_CB_RCU), and it is there when the question has been sent.
  return AsyncCall::now(info.Env(), std::make_unique<GenerationCall>(sockets_of(info.Env())));
}

Napi::Value nft_generation_watch(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Misuse misuse(env);
  const std::uint32_t seen = Argument(info[0], "generation", misuse).integer(0, std::numeric_limits<std::uint32_t>::max());
  const PollArguments poll = poll_arguments(info, 1, misuse);
  if (misuse.failed()) return misuse.raise();
  return poll_subject(env, "nft generation watch", std::make_unique<PolledGeneration>(sockets_of(env), seen), poll);
}

Napi::Value nft_max_batch(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto most = nftables::max_batch(*sockets_of(env));
  if (!most.ok()) return throw_native(env, from_netlink(most.error(), "nft max batch"));
  return Napi::Number::New(env, static_cast<double>(most.value()));
}

}  // namespace

Napi::Object nftables_functions(Napi::Env env) {
  Functions functions(env);
  functions.add<nft_compile>("nftCompile");
  functions.add<nft_encode>("nftEncode");
  functions.add<nft_transact>("nftTransact");
  functions.add<nft_list>("nftList");
  functions.add<nft_elements>("nftElements");
  functions.add<nft_base_chains>("nftBaseChains");
  functions.add<nft_generation>("nftGeneration");
  functions.add<nft_generation_watch>("nftGenerationWatch");
  functions.add<nft_max_batch>("nftMaxBatch");
  functions.add<nft_watch>("nftWatch");
  functions.add<nft_trace>("nftTrace");
  functions.add<nft_rule>("nftRule");
  return functions.object();
}

}  // namespace pointsman::addon
