#pragma once

#include <napi.h>

#include <functional>
#include <memory>
#include <utility>

#include "addon/async_call.h"
#include "addon/linux/netlink_error.h"
#include "netlink/socket_pool.h"

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

  /// The same over a socket of a pool.
  static Napi::Value start(const Napi::CallbackInfo& info, const char* name, std::shared_ptr<netlink::SocketPool> sockets,
                           std::function<netlink::Result<Answer>(netlink::Socket&)> work, Convert convert) {
    const auto pooled = [sockets = std::move(sockets), work = std::move(work)]() -> netlink::Result<Answer> {
      auto socket = sockets->take();
      if (!socket.ok()) return socket.error();
      auto answer = work(socket.value());
      // After an error answers may be left to read.
      if (answer.ok()) sockets->give_back(std::move(socket.value()));
      return answer;
    };
    return start(info, name, pooled, convert);
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
