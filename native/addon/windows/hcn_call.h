#pragma once

#include <napi.h>

#include <functional>
#include <memory>
#include <utility>

#include "addon/async_call.h"
#include "addon/windows/environment.h"
#include "addon/windows/hcn_error.h"

namespace pointsman::addon {

/// A call whose work are some of HNS: what it answers becomes the promise's value.
template <typename T>
class HcnCall final : public AsyncCall {
 public:
  using Work = std::function<hcn::Answer<T>(hcn::Library&)>;
  using Convert = std::function<Napi::Value(Napi::Env, const T&)>;

  static Napi::Value start(Napi::Env env, const char* name, Work work, Convert convert) {
    return AsyncCall::start(env, name, std::make_unique<HcnCall>(name, library_of(env), std::move(work), std::move(convert)));
  }

  HcnCall(const char* name, std::shared_ptr<hcn::Library> library, Work work, Convert convert)
      : name_(name), library_(std::move(library)), work_(std::move(work)), convert_(std::move(convert)) {}

 private:
  void execute() override {
    auto answer = work_(*library_);
    if (!answer.ok()) return fail(from_hcn(answer.error(), name_));
    answer_ = std::move(answer.value());
  }

  Napi::Value finish(Napi::Env env) override { return convert_(env, answer_); }

  const char* name_;
  std::shared_ptr<hcn::Library> library_;
  Work work_;
  Convert convert_;
  T answer_{};
};

}  // namespace pointsman::addon
