#include "addon/linux/trace.h"

#include <linux/netfilter/nf_tables.h>
#include <net/if.h>

#include <array>
#include <memory>
#include <utility>

#include "addon/argument.h"
#include "addon/linux/nft_failure.h"
#include "addon/linux/running_watch.h"
#include "addon/linux/transaction_argument.h"
#include "addon/values.h"
#include "nftables/trace.h"

namespace pointsman::addon {

namespace {

constexpr const char* kTrace = "nft trace";

const char* type_name(std::uint32_t type) {
  switch (type) {
    case NFT_TRACETYPE_RULE: return "rule";
    case NFT_TRACETYPE_RETURN: return "return";
    case NFT_TRACETYPE_POLICY: return "policy";
    default: return "other";
  }
}

Napi::Value handle_or_null(Napi::Env env, const std::optional<std::uint64_t>& handle) {
  return handle ? Napi::Number::New(env, static_cast<double>(*handle)) : env.Null();
}

/// One that has gone since keeps its number.
Napi::Value link_or_null(Napi::Env env, const std::optional<std::uint32_t>& index) {
  if (!index) return env.Null();
  std::array<char, IF_NAMESIZE> name{};
  if (if_indextoname(*index, name.data()) == nullptr) return Napi::String::New(env, std::to_string(*index));
  return Napi::String::New(env, name.data());
}

Napi::Value header_or_null(Napi::Env env, const netlink::Bytes& header) {
  return header.empty() ? env.Null() : Napi::Value(to_uint8_array(env, header));
}

Napi::Value event_value(Napi::Env env, const nftables::TraceEvent& event) {
  Napi::Object value = Napi::Object::New(env);
  value.Set("id", Napi::Number::New(env, event.id));
  value.Set("family", nftables::family_name(event.family));
  value.Set("table", event.table);
  value.Set("chain", event.chain);
  value.Set("type", type_name(event.type));
  value.Set("handle", handle_or_null(env, event.handle));
  value.Set("verdict", event.verdict ? Napi::String::New(env, nftables::verdict_text(*event.verdict)) : env.Null());
  value.Set("input", link_or_null(env, event.input));
  value.Set("output", link_or_null(env, event.output));
  value.Set("network", header_or_null(env, event.network));
  value.Set("transport", header_or_null(env, event.transport));
  return value;
}

Napi::Value trace_value(Napi::Env env, const nftables::TraceEvents& trace) {
  const Napi::Array events = Napi::Array::New(env, trace.events.size());
  for (std::uint32_t index = 0; index < trace.events.size(); ++index) {
    const Napi::HandleScope scope(env);
    events.Set(index, event_value(env, trace.events[index]));
  }
  Napi::Object value = Napi::Object::New(env);
  value.Set("events", events);
  value.Set("missed", Napi::Boolean::New(env, trace.missed));
  return value;
}

}  // namespace

Napi::Value nft_trace(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Misuse misuse(env);
  const nftables::Transaction transaction = transaction_argument(Argument(info[0], "", misuse));
  if (!info[1].IsFunction()) Argument(info[1], "onTrace", misuse).expect("a function");
  if (misuse.failed()) return misuse.raise();
  auto opened = nftables::Trace::open(transaction);
  if (!opened.ok()) {
    const Napi::Value error = to_error_object(env, from_failure(opened.error(), kTrace));
    if (!error.IsEmpty()) napi_throw(env, error);
    return env.Undefined();
  }
  return RunningWatch<nftables::Trace, nftables::TraceEvents, trace_value>::start(env, kTrace, std::move(opened.value()),
                                                                                  info[1].As<Napi::Function>(), [] {});
}

}  // namespace pointsman::addon
