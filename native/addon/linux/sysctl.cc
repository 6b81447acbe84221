#include "sysctl/watch.h"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "addon/argument.h"
#include "addon/functions.h"
#include "addon/linux/running_watch.h"
#include "addon/linux/subsystems.h"

namespace pointsman::addon {

namespace {

constexpr std::size_t kMostBytes = 4096;

Napi::Value nothing(Napi::Env env, const sysctl::Change&) { return env.Undefined(); }

std::vector<sysctl::Seen> seen_argument(const Argument& files) {
  std::vector<sysctl::Seen> seen;
  for (const Argument& file : files.items()) {
    sysctl::Seen& each = seen.emplace_back();
    each.path = file.member("path").text(1, kMostBytes);
    const Argument text = file.member("text");
    if (!text.is_null()) each.text = text.text(0, kMostBytes);
  }
  return seen;
}

Napi::Value sysctl_watch(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  std::vector<sysctl::Seen> seen = seen_argument(Argument(info[0], "files", misuse));
  const std::uint32_t period = Argument(info[1], "periodMs", misuse).integer(1, 3'600'000);
  if (!info[2].IsFunction()) Argument(info[2], "onChange", misuse).expect("a function");
  if (misuse.failed()) return misuse.raise();
  return RunningWatch<sysctl::Watch, sysctl::Change, nothing>::start(
      info.Env(), "sysctl watch", std::make_shared<sysctl::Watch>(std::move(seen), std::chrono::milliseconds(period)),
      info[2].As<Napi::Function>(), [] {});
}

}  // namespace

Napi::Object sysctl_functions(Napi::Env env) {
  Functions functions(env);
  functions.add<sysctl_watch>("sysctlWatch");
  return functions.object();
}

}  // namespace pointsman::addon
