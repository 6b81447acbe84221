#include "addon/linux/subsystems.h"

#include <netinet/in.h>

#include <cstring>
#include <memory>

#include "addon/argument.h"
#include "addon/async_call.h"
#include "addon/functions.h"
#include "addon/linux/environment.h"
#include "addon/linux/flow_counting.h"
#include "addon/linux/netlink_error.h"
#include "conntrack/challenge.h"
#include "conntrack/flows.h"

namespace pointsman::addon {

namespace {

constexpr const char* kListFlows = "conntrack list";
constexpr const char* kDelete = "conntrack delete";
constexpr const char* kChallenge = "challenge clients";

conntrack::Family flow_family(const Argument& at) { return at.either("ip", "ip6") ? conntrack::Family::kIPv6 : conntrack::Family::kIPv4; }

conntrack::FlowFilter filter_argument(const Argument& at) {
  conntrack::FlowFilter filter;
  filter.family = flow_family(at.member("family"));
  filter.protocol = static_cast<std::uint8_t>(at.member("protocol").integer(0, 255));
  const Argument destination = at.member("destination");
  if (!destination.is_null()) {
    filter.destination = destination.bytes(conntrack::address_length(filter.family), "an address of the family");
  }
  const Argument port = at.member("port");
  if (!port.is_null()) filter.port = static_cast<std::uint16_t>(port.integer(0, 65535));
  filter.unanswered = at.member("unanswered").flag();
  return filter;
}

conntrack::FlowFilter translated_argument(const Argument& family, const Argument& sources) {
  conntrack::FlowFilter filter;
  filter.family = flow_family(family);
  filter.protocol = IPPROTO_TCP;
  filter.translated = true;
  if (sources.is_null()) return filter;
  netlink::Bytes addresses = sources.bytes();
  const std::size_t length = conntrack::address_length(filter.family);
  if (addresses.size() % length != 0) sources.expect("whole addresses of " + std::to_string(length) + " bytes");
  for (std::size_t at = length; at + length <= addresses.size(); at += length) {
    if (std::memcmp(addresses.data() + at - length, addresses.data() + at, length) > 0) {
      sources.expect("addresses in ascending order");
      break;
    }
  }
  filter.reply_sources = std::move(addresses);
  return filter;
}

netlink::Bytes records_argument(const Argument& at, conntrack::Family family) {
  netlink::Bytes records = at.bytes();
  const std::size_t length = conntrack::record_length(family);
  if (records.size() % length != 0) at.expect("whole records of " + std::to_string(length) + " bytes");
  return records;
}

Napi::Value count_value(Napi::Env env, std::size_t count) {
  return Napi::Number::New(env, static_cast<double>(count));
}

class ListFlowsCall final : public AsyncCall {
 public:
  ListFlowsCall(std::shared_ptr<netlink::SocketPool> sockets, conntrack::FlowFilter filter)
      : sockets_(std::move(sockets)), filter_(std::move(filter)) {}

 private:
  void execute() override {
    auto socket = sockets_->take();
    if (!socket.ok()) return fail(from_netlink(socket.error(), kListFlows));
    auto listed = conntrack::list_flows(socket.value(), filter_);
    if (!listed.ok()) return fail(from_netlink(listed.error(), kListFlows));
    sockets_->give_back(std::move(socket.value()));
    records_ = std::move(listed.value());
  }

  Napi::Value finish(Napi::Env env) override {
    Napi::Object value = Napi::Object::New(env);
    value.Set("count", count_value(env, records_.size() / conntrack::record_length(filter_.family)));
    value.Set("records", to_uint8_array(env, records_));
    return value;
  }

  std::shared_ptr<netlink::SocketPool> sockets_;
  conntrack::FlowFilter filter_;
  netlink::Bytes records_;
};

class DeleteCall final : public AsyncCall {
 public:
  DeleteCall(std::shared_ptr<netlink::SocketPool> sockets, conntrack::Family family, netlink::Bytes records)
      : sockets_(std::move(sockets)), family_(family), records_(std::move(records)) {}

 private:
  void execute() override {
    auto socket = sockets_->take();
    if (!socket.ok()) return fail(from_netlink(socket.error(), kDelete));
    const auto deleted = conntrack::delete_flows(socket.value(), family_, records_);
    if (!deleted.ok()) return fail(refusal(deleted.error()));
    sockets_->give_back(std::move(socket.value()));
    deletion_ = deleted.value();
  }

  Napi::Value finish(Napi::Env env) override {
    Napi::Object value = Napi::Object::New(env);
    value.Set("deleted", count_value(env, deletion_.deleted));
    value.Set("missing", count_value(env, deletion_.missing));
    return value;
  }

  NativeError refusal(const conntrack::FlowDeletionError& refused) const {
    NativeError error = from_netlink(refused.error, kDelete);
    if (!refused.index) return error;
    const std::size_t length = conntrack::record_length(family_);
    error.object = conntrack::describe(family_, netlink::ByteView(records_).subspan(*refused.index * length, length));
    error.index = static_cast<std::uint32_t>(*refused.index);
    return error;
  }

  std::shared_ptr<netlink::SocketPool> sockets_;
  conntrack::Family family_;
  netlink::Bytes records_;
  conntrack::FlowDeletion deletion_;
};

class ChallengeCall final : public AsyncCall {
 public:
  ChallengeCall(conntrack::Family family, netlink::Bytes records) : family_(family), records_(std::move(records)) {}

 private:
  void execute() override {
    auto sent = conntrack::send_challenges(family_, records_);
    if (!sent.ok()) return fail(from_netlink(sent.error(), kChallenge));
    challenges_ = std::move(sent.value());
  }

  Napi::Value finish(Napi::Env env) override {
    Napi::Object value = Napi::Object::New(env);
    value.Set("sent", count_value(env, challenges_.sent));
    const auto& failure = challenges_.failure;
    value.Set("failure", failure ? to_error_object(env, from_netlink(*failure, kChallenge)) : env.Null());
    return value;
  }

  conntrack::Family family_;
  netlink::Bytes records_;
  conntrack::Challenges challenges_;
};

Napi::Value conntrack_list(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  conntrack::FlowFilter filter = filter_argument(Argument(info[0], "filter", misuse));
  if (misuse.failed()) return misuse.raise();
  return AsyncCall::start(info.Env(), kListFlows, std::make_unique<ListFlowsCall>(sockets_of(info.Env()), std::move(filter)));
}

Napi::Value conntrack_list_translated(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  conntrack::FlowFilter filter =
      translated_argument(Argument(info[0], "family", misuse), Argument(info[1], "replySources", misuse));
  if (misuse.failed()) return misuse.raise();
  return AsyncCall::start(info.Env(), kListFlows, std::make_unique<ListFlowsCall>(sockets_of(info.Env()), std::move(filter)));
}

Napi::Value conntrack_challenge(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const conntrack::Family family = flow_family(Argument(info[0], "family", misuse));
  netlink::Bytes records = records_argument(Argument(info[1], "records", misuse), family);
  if (misuse.failed()) return misuse.raise();
  return AsyncCall::start(info.Env(), kChallenge, std::make_unique<ChallengeCall>(family, std::move(records)));
}

Napi::Value conntrack_delete(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const conntrack::Family family = flow_family(Argument(info[0], "family", misuse));
  netlink::Bytes records = records_argument(Argument(info[1], "records", misuse), family);
  if (misuse.failed()) return misuse.raise();
  return AsyncCall::start(info.Env(), kDelete, std::make_unique<DeleteCall>(sockets_of(info.Env()), family, std::move(records)));
}

}  // namespace

Napi::Object conntrack_functions(Napi::Env env) {
  Functions functions(env);
  functions.add<conntrack_list>("conntrackList");
  functions.add<conntrack_list_translated>("conntrackListTranslated");
  functions.add<conntrack_delete>("conntrackDelete");
  functions.add<conntrack_challenge>("conntrackChallenge");
  functions.add<conntrack_count>("conntrackCount");
  return functions.object();
}

}  // namespace pointsman::addon
