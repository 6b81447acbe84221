#pragma once

#include <napi.h>

#include <chrono>
#include <cstddef>
#include <memory>

#include "addon/argument.h"
#include "polling/poller.h"

namespace pointsman::addon {

/// The arguments `periodMs` and `onChange` of a call that polls.
struct PollArguments {
  std::chrono::milliseconds period{};
  Napi::Function on_change;
};

/// Reads the two arguments that begin at this index.
PollArguments poll_arguments(const Napi::CallbackInfo& info, std::size_t first, Misuse& misuse);

/// Polls the subject until it is changed, and then calls JavaScript once. Answers the function that ends it; it ends with the environment too, and does not
/// keep the process alive.
Napi::Value poll_subject(Napi::Env env, const char* name, std::unique_ptr<polling::Subject> subject, const PollArguments& arguments);

}  // namespace pointsman::addon
