#pragma once

#include <napi.h>

#include <functional>
#include <memory>
#include <utility>

#include "addon/async_call.h"
#include "addon/linux/netlink_error.h"

namespace pointsman::addon {

/// A call whose work is one netlink exchange: what it answers becomes the promise's value.
template <typename Answer>
class SimpleCall final : public AsyncCall {
 public:
  using Work = std::function<netlink::Result<Answer>()>;
  using Convert = Napi::Value (*)(Napi::Env, const Answer&);

  static Napi::Value start(const Napi::CallbackInfo& info, const char* name, Work work, Convert convert) {
    return AsyncCall::start(info.Env(), name, std::make_unique<SimpleCall>(name, std::move(work), convert));
  }

  SimpleCall(const char* name, Work work, Convert convert) : name_(name), work_(std::move(work)), convert_(convert) {}

 private:
  void execute() override {
    auto answer = work_();
    if (!answer.ok()) return fail(from_netlink(answer.error(), name_));
    answer_ = std::move(answer.value());
  }

  Napi::Value finish(Napi::Env env) override { return convert_(env, answer_); }

  const char* name_;
  Work work_;
  Convert convert_;
  Answer answer_{};
};

}  // namespace pointsman::addon
