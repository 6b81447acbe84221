#include "addon/linux/watch.h"

#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "addon/argument.h"
#include "addon/linux/environment.h"
#include "addon/linux/netlink_error.h"
#include "addon/linux/transaction_argument.h"
#include "nftables/watch.h"

namespace pointsman::addon {

namespace {

constexpr const char* kWatch = "nft watch";

/// What a watch's thread saw and JavaScript has not been told of.
class Inbox {
 public:
  /// Whether JavaScript has to be called: it is not when a call is on its way already.
  bool put(const nftables::ForeignChange& change) {
    const std::lock_guard lock(mutex_);
    const bool first = !change_.any();
    change_.merge(change);
    return first;
  }

  nftables::ForeignChange take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(change_, {});
  }

 private:
  std::mutex mutex_;
  nftables::ForeignChange change_;
};

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

/// A watch with a thread that waits for it, until JavaScript stops it or the environment ends.
class RunningWatch {
 public:
  static void start(Napi::Env env, std::shared_ptr<nftables::Watch> watch, const Napi::Function& on_change,
                    std::weak_ptr<RunningWatch>& handle) {
    const std::shared_ptr<RunningWatch> running(std::make_shared<RunningWatch>(env, std::move(watch)));
    if (napi_create_threadsafe_function(env, on_change, nullptr, Napi::String::New(env, kWatch), 0, 1, nullptr, nullptr,
                                        running->inbox_.get(), call, &running->function_) != napi_ok) {
      Napi::Error::New(env, "cannot create a thread-safe function").ThrowAsJavaScriptException();
      return;
    }
    // A watch alone does not keep the process alive.
    napi_unref_threadsafe_function(env, running->function_);
    // The environment runs its hooks last added first: this one before that of the thread-safe function.
    running->self_ = running;
    napi_add_env_cleanup_hook(env, end, running.get());
    running->watches_->add(running->watch_);
    running->thread_ = std::thread([watch = running->watch_, inbox = running->inbox_, function = running->function_] {
      while (const auto change = watch->wait()) {
        if (inbox->put(*change)) napi_call_threadsafe_function(function, nullptr, napi_tsfn_nonblocking);
      }
    });
    handle = running;
  }

  RunningWatch(Napi::Env env, std::shared_ptr<nftables::Watch> watch)
      : env_(env), watch_(std::move(watch)), watches_(watches_of(env)) {}

  void stop() {
    napi_remove_env_cleanup_hook(env_, end, this);
    finish();
  }

 private:
  static void end(void* running) { static_cast<RunningWatch*>(running)->finish(); }

  static void call(napi_env raw_env, napi_value callback, void* inbox, void*) {
    if (raw_env == nullptr || callback == nullptr) return;
    const Napi::Env env(raw_env);
    const Napi::HandleScope scope(env);
    const nftables::ForeignChange change = static_cast<Inbox*>(inbox)->take();
    Napi::Function(env, callback).Call({change_value(env, change)});
  }

  void finish() {
    watch_->stop();
    watches_->remove(watch_);
    thread_.join();
    // Aborts: JavaScript is not called for what is still queued.
    napi_release_threadsafe_function(function_, napi_tsfn_abort);
    self_.reset();
  }

  napi_env env_;
  std::shared_ptr<nftables::Watch> watch_;
  std::shared_ptr<nftables::Watches> watches_;
  std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  napi_threadsafe_function function_ = nullptr;
  std::thread thread_;
  /// While it runs it owns itself.
  std::shared_ptr<RunningWatch> self_;
};

}  // namespace

Napi::Value nft_watch(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Misuse misuse(env);
  std::string table = name_argument(Argument(info[0], "table", misuse));
  if (!info[1].IsFunction()) Argument(info[1], "onChange", misuse).expect("a function");
  if (misuse.failed()) return misuse.raise();
  auto opened = nftables::Watch::open(std::move(table), sockets_of(env)->port_bits());
  if (!opened.ok()) {
    const Napi::Value error = to_error_object(env, from_netlink(opened.error(), kWatch));
    if (!error.IsEmpty()) napi_throw(env, error);
    return env.Undefined();
  }
  std::weak_ptr<RunningWatch> running;
  RunningWatch::start(env, std::move(opened.value()), info[1].As<Napi::Function>(), running);
  if (env.IsExceptionPending()) return env.Undefined();
  return Napi::Function::New(
      env,
      [running](const Napi::CallbackInfo&) {
        if (const auto held = running.lock()) held->stop();
      },
      "stop");
}

}  // namespace pointsman::addon
