#include "addon/linux/watch.h"

#include <memory>
#include <utility>

#include "addon/argument.h"
#include "addon/linux/environment.h"
#include "addon/linux/netlink_error.h"
#include "addon/linux/running_watch.h"
#include "addon/linux/transaction_argument.h"
#include "nftables/watch.h"

namespace pointsman::addon {

namespace {

constexpr const char* kWatchTables = "nft watch";

Napi::Value change_value(Napi::Env env, const nftables::ForeignChange& change) {
  const Napi::Array families = Napi::Array::New(env);
  if (change.ip) families.Set(families.Length(), Napi::String::New(env, "ip"));
  if (change.ip6) families.Set(families.Length(), Napi::String::New(env, "ip6"));
  Napi::Object value = Napi::Object::New(env);
  value.Set("families", families);
  value.Set("missed", Napi::Boolean::New(env, change.missed));
  value.Set("process", change.process.empty() ? env.Null() : Napi::String::New(env, change.process));
  return value;
}

}  // namespace

Napi::Value nft_watch(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Misuse misuse(env);
  std::string table = name_argument(Argument(info[0], "table", misuse));
  if (!info[1].IsFunction()) Argument(info[1], "onChange", misuse).expect("a function");
  if (misuse.failed()) return misuse.raise();
  auto opened = nftables::Watch::open(std::move(table), sockets_of(env)->port_bits());
  if (!opened.ok()) return throw_netlink(env, opened.error(), kWatchTables);
  const std::shared_ptr<nftables::Watch> watch(std::move(opened.value()));
  const std::shared_ptr<nftables::Watches> watches = watches_of(env);
  watches->add(watch);
  return RunningWatch<nftables::Watch, nftables::ForeignChange, change_value>::start(
      env, kWatchTables, watch, info[1].As<Napi::Function>(), [watches, watch] { watches->remove(watch); });
}

}  // namespace pointsman::addon
