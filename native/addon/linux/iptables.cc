#include "addon/linux/subsystems.h"

#include <sys/socket.h>

#include <chrono>
#include <memory>

#include "addon/argument.h"
#include "addon/async_call.h"
#include "addon/functions.h"
#include "addon/linux/iptables_argument.h"
#include "addon/linux/polled_subject.h"
#include "addon/linux/simple_call.h"
#include "addon/values.h"
#include "iptables/digest.h"
#include "iptables/match.h"
#include "iptables/programs.h"
#include "iptables/recent.h"
#include "iptables/render.h"
#include "iptables/sizes.h"

namespace pointsman::addon {

namespace {

using iptables::ChainListing;
using iptables::ChainOperation;
using iptables::ProcessEnvironment;

constexpr const char* kFlavors = "iptables flavors";
constexpr const char* kDigests = "iptables digests";
constexpr const char* kRestore = "iptables restore";
constexpr const char* kListChains = "iptables list";
constexpr const char* kCounts = "iptables counts";
constexpr const char* kMatch = "iptables match";
constexpr const char* kSizes = "iptables sizes";
constexpr const char* kRemembering = "iptables remembering";

/// Of a few hundred tables: the kernel has five.
constexpr std::size_t kMaxSizesBytes = 65'536;

NativeError from_program_failure(const iptables::Failure& failure, const char* operation) {
  NativeError error;
  error.code = "ERR_IPTABLES";
  error.error_number = failure.error_number;
  error.operation = operation;
  error.reason = failure.reason;
  error.object = failure.object;
  error.index = failure.operation;
  return error;
}

Napi::Value chain_value(Napi::Env env, const ChainListing& chain) {
  Napi::Object value = Napi::Object::New(env);
  value.Set("table", Napi::String::New(env, chain.table));
  value.Set("name", Napi::String::New(env, chain.name));
  value.Set("policy", text_or_null(env, chain.policy));
  value.Set("ruleCount", Napi::Number::New(env, chain.rule_count));
  value.Set("digest", text_or_null(env, chain.digest));
  value.Set("rules", chain.rules ? texts_value(env, *chain.rules) : env.Null());
  return value;
}

class FlavorsCall final : public AsyncCall {
 public:
  explicit FlavorsCall(iptables::Family family) : family_(family) {}

 private:
  void execute() override { found_ = iptables::find_flavors(environment_, family_); }

  Napi::Value finish(Napi::Env env) override {
    const Napi::Array array = Napi::Array::New(env, found_.size());
    for (std::uint32_t index = 0; index < found_.size(); ++index) {
      Napi::Object value = Napi::Object::New(env);
      value.Set("flavor", Napi::String::New(env, name_of(found_[index].flavor)));
      value.Set("version", Napi::String::New(env, found_[index].version));
      array.Set(index, value);
    }
    return array;
  }

  ProcessEnvironment environment_ = ProcessEnvironment::current();
  iptables::Family family_;
  std::vector<iptables::FoundFlavor> found_;
};

class DigestsCall final : public AsyncCall {
 public:
  explicit DigestsCall(iptables::Transaction transaction) : transaction_(std::move(transaction)) {}

 private:
  void execute() override {
    for (const iptables::Operation& operation : transaction_.operations) {
      const auto* chain = std::get_if<ChainOperation>(&operation);
      if (chain == nullptr) continue;
      iptables::Digest digest;
      each_rule(transaction_.family, *chain, [&](std::string_view rule) { digest.add(rule); });
      digests_.push_back(digest.text());
    }
  }

  Napi::Value finish(Napi::Env env) override { return texts_value(env, digests_); }

  iptables::Transaction transaction_;
  std::vector<std::string> digests_;
};

class RestoreCall final : public AsyncCall {
 public:
  explicit RestoreCall(iptables::Transaction transaction) : transaction_(std::move(transaction)) {}

 private:
  void execute() override {
    const auto restored = iptables::restore(environment_, transaction_);
    if (!restored.ok()) return fail(from_program_failure(restored.error(), kRestore));
    ack_ = restored.value();
  }

  Napi::Value finish(Napi::Env env) override {
    Napi::Object value = Napi::Object::New(env);
    value.Set("bytes", Napi::Number::New(env, static_cast<double>(ack_.bytes)));
    value.Set("rules", Napi::Number::New(env, ack_.rules));
    return value;
  }

  ProcessEnvironment environment_ = ProcessEnvironment::current();
  iptables::Transaction transaction_;
  iptables::Ack ack_;
};

class ListChainsCall final : public AsyncCall {
 public:
  ListChainsCall(iptables::Family family, iptables::Flavor flavor, std::vector<iptables::Table> tables, std::vector<std::string> text_of)
      : family_(family), flavor_(flavor), tables_(std::move(tables)), text_of_(std::move(text_of)) {}

 private:
  void execute() override {
    auto listed = iptables::list_chains(environment_, family_, flavor_, tables_, text_of_);
    if (!listed.ok()) return fail(from_program_failure(listed.error(), kListChains));
    chains_ = std::move(listed.value());
  }

  Napi::Value finish(Napi::Env env) override {
    const Napi::Array array = Napi::Array::New(env, chains_.size());
    for (std::uint32_t index = 0; index < chains_.size(); ++index) {
      const Napi::HandleScope scope(env);
      array.Set(index, chain_value(env, chains_[index]));
    }
    return array;
  }

  ProcessEnvironment environment_ = ProcessEnvironment::current();
  iptables::Family family_;
  iptables::Flavor flavor_;
  std::vector<iptables::Table> tables_;
  std::vector<std::string> text_of_;
  std::vector<ChainListing> chains_;
};

class SizesCall final : public AsyncCall {
 public:
  explicit SizesCall(iptables::Family family) : family_(family) {}

 private:
  void execute() override {
    auto sizes = iptables::table_sizes(family_);
    if (!sizes.ok()) {
      iptables::Failure failure;
      failure.error_number = sizes.error();
      failure.reason = "the kernel does not tell the sizes of its tables";
      return fail(from_program_failure(failure, kSizes));
    }
    sizes_ = std::move(sizes.value());
  }

  Napi::Value finish(Napi::Env env) override { return Napi::String::New(env, sizes_); }

  iptables::Family family_;
  std::string sizes_;
};

/// What `table_sizes` answers.
class PolledSizes final : public polling::Subject {
 public:
  PolledSizes(iptables::Family family, std::string seen) : family_(family), seen_(std::move(seen)) {}

  bool is_changed() override {
    auto sizes = iptables::table_sizes(family_);
    return !sizes.ok() || sizes.value() != seen_;
  }

 private:
  iptables::Family family_;
  std::string seen_;
};

Napi::Value counts_value(Napi::Env env, const ChainListing& chain) {
  std::vector<std::string> rules;
  std::vector<double> packets;
  for (const iptables::CountedRule& counted : chain.counted) {
    rules.push_back(counted.rule);
    packets.push_back(static_cast<double>(counted.packets));
  }
  Napi::Object value = Napi::Object::New(env);
  value.Set("chain", Napi::String::New(env, chain.name));
  value.Set("digest", text_or_null(env, chain.digest));
  value.Set("rules", texts_value(env, rules));
  value.Set("packets", numbers_value(env, packets));
  return value;
}

class CountsCall final : public AsyncCall {
 public:
  CountsCall(iptables::Family family, iptables::Flavor flavor, iptables::Table table, std::string prefix)
      : family_(family), flavor_(flavor), table_(table), prefix_(std::move(prefix)) {}

 private:
  void execute() override {
    auto counted = iptables::count_packets(environment_, family_, flavor_, table_, prefix_);
    if (!counted.ok()) return fail(from_program_failure(counted.error(), kCounts));
    chains_ = std::move(counted.value());
  }

  Napi::Value finish(Napi::Env env) override {
    const Napi::Array array = Napi::Array::New(env, chains_.size());
    for (std::uint32_t index = 0; index < chains_.size(); ++index) {
      const Napi::HandleScope scope(env);
      array.Set(index, counts_value(env, chains_[index]));
    }
    return array;
  }

  ProcessEnvironment environment_ = ProcessEnvironment::current();
  iptables::Family family_;
  iptables::Flavor flavor_;
  iptables::Table table_;
  std::string prefix_;
  std::vector<ChainListing> chains_;
};

class RememberingCall final : public AsyncCall {
 public:
  RememberingCall(std::vector<std::string> lists, netlink::Bytes source, std::uint32_t seconds)
      : lists_(std::move(lists)), source_(std::move(source)), seconds_(seconds) {}

 private:
  void execute() override {
    const auto found = iptables::first_remembering(lists_, source_, seconds_);
    if (!found.ok()) return fail(from_program_failure(found.error(), kRemembering));
    index_ = found.value();
  }

  Napi::Value finish(Napi::Env env) override { return index_ ? Napi::Number::New(env, *index_) : env.Null(); }

  std::vector<std::string> lists_;
  netlink::Bytes source_;
  std::uint32_t seconds_;
  std::optional<std::uint32_t> index_;
};

Napi::Value iptables_flavors(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const iptables::Family family = iptables_family_argument(Argument(info[0], "family", misuse));
  if (misuse.failed()) return misuse.raise();
  return AsyncCall::start(info.Env(), kFlavors, std::make_unique<FlavorsCall>(family));
}

Napi::Value iptables_encode(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const iptables::Transaction transaction = iptables_transaction_argument(Argument(info[0], "", misuse));
  if (misuse.failed()) return misuse.raise();
  return Napi::String::New(info.Env(), iptables::Stream(transaction).text());
}

Napi::Value iptables_digests(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  iptables::Transaction transaction = iptables_transaction_argument(Argument(info[0], "", misuse));
  if (misuse.failed()) return misuse.raise();
  return AsyncCall::start(info.Env(), kDigests, std::make_unique<DigestsCall>(std::move(transaction)));
}

Napi::Value iptables_restore(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  iptables::Transaction transaction = iptables_transaction_argument(Argument(info[0], "", misuse));
  if (misuse.failed()) return misuse.raise();
  return AsyncCall::start(info.Env(), kRestore, std::make_unique<RestoreCall>(std::move(transaction)));
}

Napi::Value iptables_list(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const iptables::Family family = iptables_family_argument(Argument(info[0], "family", misuse));
  const iptables::Flavor flavor = iptables_flavor_argument(Argument(info[1], "flavor", misuse));
  std::vector<iptables::Table> tables;
  for (const Argument& table : Argument(info[2], "tables", misuse).items()) tables.push_back(iptables_table_argument(table));
  std::vector<std::string> text_of;
  for (const Argument& prefix : Argument(info[3], "textOf", misuse).items()) text_of.push_back(prefix.text(0, 255));
  if (misuse.failed()) return misuse.raise();
  return AsyncCall::start(info.Env(), kListChains,
                          std::make_unique<ListChainsCall>(family, flavor, std::move(tables), std::move(text_of)));
}

Napi::Value iptables_counts(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const iptables::Family family = iptables_family_argument(Argument(info[0], "family", misuse));
  const iptables::Flavor flavor = iptables_flavor_argument(Argument(info[1], "flavor", misuse));
  const iptables::Table table = iptables_table_argument(Argument(info[2], "table", misuse));
  std::string prefix = Argument(info[3], "prefix", misuse).text(0, 255);
  if (misuse.failed()) return misuse.raise();
  return AsyncCall::start(info.Env(), kCounts, std::make_unique<CountsCall>(family, flavor, table, std::move(prefix)));
}

Napi::Value iptables_sizes(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const iptables::Family family = iptables_family_argument(Argument(info[0], "family", misuse));
  if (misuse.failed()) return misuse.raise();
  return AsyncCall::start(info.Env(), kSizes, std::make_unique<SizesCall>(family));
}

Napi::Value iptables_sizes_watch(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const iptables::Family family = iptables_family_argument(Argument(info[0], "family", misuse));
  std::string seen = Argument(info[1], "sizes", misuse).text(0, kMaxSizesBytes);
  const PollArguments poll = poll_arguments(info, 2, misuse);
  if (misuse.failed()) return misuse.raise();
  return poll_subject(info.Env(), "iptables sizes watch", std::make_unique<PolledSizes>(family, std::move(seen)), poll);
}

Napi::Value iptables_listing_ms(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), std::chrono::duration<double, std::milli>(iptables::listing_time()).count());
}

Napi::Value to_answer(Napi::Env env, const std::optional<bool>& answer) {
  return answer ? Napi::Boolean::New(env, *answer) : env.Null();
}

Napi::Value iptables_match(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const iptables::Family family = iptables_family_argument(Argument(info[0], "family", misuse));
  // XT_EXTENSION_MAXNAMELEN, and its NUL.
  const std::string name = Argument(info[1], "name", misuse).text(1, 28);
  if (misuse.failed()) return misuse.raise();
  const std::uint8_t number = family == iptables::Family::kIPv4 ? AF_INET : AF_INET6;
  return SimpleCall<std::optional<bool>>::start(info, kMatch, [number, name] { return iptables::has_match(number, name); }, to_answer);
}

Napi::Value iptables_remembering(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  std::vector<std::string> lists;
  for (const Argument& list : Argument(info[0], "lists", misuse).items()) lists.push_back(iptables_list_argument(list));
  const Argument at(info[1], "source", misuse);
  netlink::Bytes source = at.bytes();
  if (source.size() != 4 && source.size() != 16) at.expect("an address of 4 or 16 bytes");
  const std::uint32_t seconds = Argument(info[2], "seconds", misuse).integer(1, kMaxSeconds);
  if (misuse.failed()) return misuse.raise();
  return AsyncCall::start(info.Env(), kRemembering, std::make_unique<RememberingCall>(std::move(lists), std::move(source), seconds));
}

}  // namespace

Napi::Object iptables_functions(Napi::Env env) {
  Functions functions(env);
  functions.add<iptables_flavors>("iptablesFlavors");
  functions.add<iptables_encode>("iptablesEncode");
  functions.add<iptables_digests>("iptablesDigests");
  functions.add<iptables_restore>("iptablesRestore");
  functions.add<iptables_list>("iptablesList");
  functions.add<iptables_listing_ms>("iptablesListingMs");
  functions.add<iptables_counts>("iptablesCounts");
  functions.add<iptables_sizes>("iptablesSizes");
  functions.add<iptables_sizes_watch>("iptablesSizesWatch");
  functions.add<iptables_match>("iptablesMatch");
  functions.add<iptables_remembering>("iptablesRemembering");
  return functions.object();
}

}  // namespace pointsman::addon
