#include "relay/relay.h"

#include <napi.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "addon/argument.h"
#include "addon/caller.h"
#include "addon/functions.h"
#include "addon/linux/subsystems.h"
#include "addon/platform.h"

namespace pointsman::addon {

namespace {

struct Ends {
  std::vector<relay::End> all;

  bool any() const { return !all.empty(); }
  void merge(const Ends& later) { all.insert(all.end(), later.all.begin(), later.all.end()); }
};

Napi::Value ends_value(Napi::Env env, const Ends& ends) {
  const Napi::Array value = Napi::Array::New(env, ends.all.size());
  for (std::uint32_t index = 0; index < ends.all.size(); ++index) {
    const relay::End& end = ends.all[index];
    Napi::Object each = Napi::Object::New(env);
    each.Set("id", Napi::Number::New(env, static_cast<double>(end.id)));
    each.Set("lack", end.lack == 0 ? env.Null() : Napi::String::New(env, error_name(end.lack)));
    value.Set(index, each);
  }
  return value;
}

/// Until JavaScript closes it or the environment ends. While it lasts it owns itself.
class OpenRelay {
  using EndCaller = Caller<Ends, ends_value>;

 public:
  OpenRelay(Napi::Env env, std::shared_ptr<EndCaller> caller)
      : env_(env), caller_(std::move(caller)), relay_(std::in_place, [caller = caller_.get()](const relay::End& end) { caller->tell({{end}}); }) {}

  static std::weak_ptr<OpenRelay> start(Napi::Env env, std::shared_ptr<EndCaller> caller) {
    const auto open = std::make_shared<OpenRelay>(env, std::move(caller));
    // The environment runs its hooks last added first: this one before that of the thread-safe function.
    open->self_ = open;
    napi_add_env_cleanup_hook(env, finish, open.get());
    return open;
  }

  relay::Relay& relay() { return *relay_; }

  void close() {
    napi_remove_env_cleanup_hook(env_, finish, this);
    finish(this);
  }

 private:
  static void finish(void* open) {
    const auto self = std::move(static_cast<OpenRelay*>(open)->self_);
    self->relay_.reset();
    self->caller_.reset();
  }

  napi_env env_;
  std::shared_ptr<EndCaller> caller_;
  std::optional<relay::Relay> relay_;
  std::shared_ptr<OpenRelay> self_;
};

/// A function of the object that JavaScript gets, which does nothing once the relay is closed.
template <Napi::Value (*call)(const Napi::CallbackInfo&, OpenRelay&)>
Napi::Function function_of(Napi::Env env, const char* name, const std::weak_ptr<OpenRelay>& handle) {
  return Napi::Function::New(
      env,
      [handle](const Napi::CallbackInfo& info) -> Napi::Value {
        const auto held = handle.lock();
        return held == nullptr ? info.Env().Undefined() : call(info, *held);
      },
      name);
}

Napi::Value relay_carry(const Napi::CallbackInfo& info, OpenRelay& open) {
  Misuse misuse(info.Env());
  const int one = Argument(info[0], "one", misuse).descriptor();
  const int other = Argument(info[1], "other", misuse).descriptor();
  if (misuse.failed()) return misuse.raise();
  auto id = open.relay().add(one, other);
  if (!id.ok()) return Napi::String::New(info.Env(), error_name(id.error()));
  return Napi::Number::New(info.Env(), static_cast<double>(id.value()));
}

Napi::Value relay_end(const Napi::CallbackInfo& info, OpenRelay& open) {
  if (info[0].IsNumber()) open.relay().end(static_cast<std::uint64_t>(info[0].As<Napi::Number>().Int64Value()));
  return info.Env().Undefined();
}

Napi::Value relay_close(const Napi::CallbackInfo& info, OpenRelay& open) {
  open.close();
  return info.Env().Undefined();
}

Napi::Value relay_open(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Misuse misuse(env);
  if (!info[0].IsFunction()) Argument(info[0], "onEnd", misuse).expect("a function");
  if (misuse.failed()) return misuse.raise();
  auto caller = Caller<Ends, ends_value>::make(env, "relay", info[0].As<Napi::Function>());
  if (caller == nullptr) return env.Undefined();
  const auto handle = OpenRelay::start(env, std::move(caller));
  Napi::Object functions = Napi::Object::New(env);
  functions.Set("carry", function_of<relay_carry>(env, "carry", handle));
  functions.Set("end", function_of<relay_end>(env, "end", handle));
  functions.Set("close", function_of<relay_close>(env, "close", handle));
  return functions;
}

}  // namespace

Napi::Object relay_functions(Napi::Env env) {
  Functions functions(env);
  functions.add<relay_open>("relayOpen");
  return functions.object();
}

}  // namespace pointsman::addon
