#include <memory>
#include <utility>
#include <vector>

#include "addon/argument.h"
#include "addon/functions.h"
#include "addon/linux/polled_subject.h"
#include "addon/linux/subsystems.h"
#include "polling/files.h"

namespace pointsman::addon {

namespace {

constexpr std::size_t kMostBytes = 4096;

std::vector<polling::SeenFile> seen_argument(const Argument& files) {
  std::vector<polling::SeenFile> seen;
  for (const Argument& file : files.items()) {
    polling::SeenFile& each = seen.emplace_back();
    each.path = file.member("path").text(1, kMostBytes);
    const Argument text = file.member("text");
    if (!text.is_null()) each.text = text.text(0, kMostBytes);
  }
  return seen;
}

Napi::Value sysctl_watch(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  std::vector<polling::SeenFile> seen = seen_argument(Argument(info[0], "files", misuse));
  const PollArguments poll = poll_arguments(info, 1, misuse);
  if (misuse.failed()) return misuse.raise();
  return poll_subject(info.Env(), "sysctl watch", std::make_unique<polling::Files>(std::move(seen)), poll);
}

}  // namespace

Napi::Object sysctl_functions(Napi::Env env) {
  Functions functions(env);
  functions.add<sysctl_watch>("sysctlWatch");
  return functions.object();
}

}  // namespace pointsman::addon
