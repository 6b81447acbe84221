#include <linux/netfilter/ipset/ip_set.h>
#include <sys/socket.h>

#include <algorithm>

#include "addon/argument.h"
#include "addon/functions.h"
#include "addon/linux/applied.h"
#include "addon/linux/environment.h"
#include "addon/linux/simple_call.h"
#include "addon/linux/subsystems.h"
#include "addon/values.h"
#include "ipset/sets.h"

namespace pointsman::addon {

namespace {

using Names = std::vector<std::string>;
using Listings = std::vector<std::optional<ipset::Listing>>;

constexpr const char* kNames = "ipset names";
constexpr const char* kApplySets = "ipset apply";
constexpr const char* kListSets = "ipset list";
constexpr const char* kSetDigests = "ipset digests";

Napi::Value to_applied_sets(Napi::Env env, const netlink::Applied& applied) { return applied_value(env, applied, kApplySets); }

Napi::Value to_family(Napi::Env env, std::uint8_t family) {
  if (family == AF_UNSPEC) return env.Null();
  return Napi::String::New(env, family == AF_INET ? "IPv4" : "IPv6");
}

Napi::Value to_ports(Napi::Env env, const std::optional<ipset::Ports>& ports) {
  if (!ports) return env.Null();
  Napi::Object value = Napi::Object::New(env);
  value.Set("first", Napi::Number::New(env, ports->first));
  value.Set("last", Napi::Number::New(env, ports->last));
  return value;
}

Napi::Value to_comments(Napi::Env env, const ipset::Comments& comments) {
  if (std::ranges::none_of(comments, [](const auto& comment) { return comment.has_value(); })) return env.Null();
  const Napi::Array array = Napi::Array::New(env, comments.size());
  for (std::uint32_t index = 0; index < comments.size(); ++index) {
    const Napi::HandleScope scope(env);
    array.Set(index, text_or_null(env, comments[index]));
  }
  return array;
}

Napi::Value to_listing(Napi::Env env, const std::optional<ipset::Listing>& listing) {
  if (!listing) return env.Null();
  Napi::Object value = Napi::Object::New(env);
  value.Set("name", Napi::String::New(env, listing->name));
  value.Set("type", Napi::String::New(env, listing->type));
  value.Set("family", to_family(env, listing->family));
  value.Set("hashSize", Napi::Number::New(env, listing->hash_size));
  value.Set("maxElements", Napi::Number::New(env, listing->max_elements));
  value.Set("comments", Napi::Boolean::New(env, listing->comments));
  value.Set("counters", Napi::Boolean::New(env, listing->counters));
  value.Set("ports", to_ports(env, listing->ports));
  value.Set("plain", Napi::Boolean::New(env, listing->plain));
  value.Set("references", Napi::Number::New(env, listing->references));
  value.Set("elements", listing->elements ? to_uint8_array(env, *listing->elements) : env.Null());
  value.Set("elementComments", to_comments(env, listing->element_comments));
  const auto& packets = listing->element_packets;
  value.Set("elementPackets", listing->counters ? numbers_value(env, {packets.begin(), packets.end()}) : env.Null());
  return value;
}

Napi::Value to_listings(Napi::Env env, const Listings& listings) {
  const Napi::Array array = Napi::Array::New(env, listings.size());
  for (std::uint32_t index = 0; index < listings.size(); ++index) {
    const Napi::HandleScope scope(env);
    array.Set(index, to_listing(env, listings[index]));
  }
  return array;
}

std::string set_name_argument(const Argument& at) { return at.text(1, IPSET_MAXNAMELEN - 1); }

ipset::Type type_argument(const Argument& at) {
  return static_cast<ipset::Type>(at.word({"hash:ip", "hash:ip,port", "hash:ip,port,ip", "hash:ip,port,net", "hash:net,net", "bitmap:port"}));
}

std::uint8_t set_family_argument(const Argument& at, ipset::Type type) {
  if (type != ipset::Type::kPort) return at.either("IPv4", "IPv6") ? AF_INET6 : AF_INET;
  if (!at.is_null()) at.expect("null");
  return AF_UNSPEC;
}

ipset::Ports ports_argument(const Argument& at) {
  const std::uint32_t first = at.member("first").integer(0, 65535);
  return {static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(at.member("last").integer(first, 65535))};
}

ipset::Creation creation_argument(const Argument& at) {
  ipset::Creation creation;
  creation.name = set_name_argument(at.member("name"));
  creation.type = type_argument(at.member("type"));
  creation.family = set_family_argument(at.member("family"), creation.type);
  const bool ports = creation.type == ipset::Type::kPort;
  creation.hash_size = at.member("hashSize").integer(ports ? 0 : 1, ports ? 0 : INT32_MAX);
  creation.max_elements = at.member("maxElements").integer(ports ? 0 : 1, ports ? 0 : UINT32_MAX);
  creation.comments = at.member("comments").flag();
  creation.counters = at.member("counters").flag();
  const Argument range = at.member("ports");
  if (ports) creation.ports = ports_argument(range);
  else if (!range.is_null()) range.expect("null");
  return creation;
}

ipset::Comments comments_argument(const Argument& at, std::size_t count) {
  ipset::Comments comments;
  if (at.is_null()) return comments;
  for (const Argument& each : at.items()) {
    // Not that of an element, which has none when its getter threw.
    const Napi::HandleScope scope(at.value().Env());
    comments.push_back(each.is_null() ? std::nullopt : std::optional(each.text(0, IPSET_MAX_COMMENT_SIZE)));
  }
  if (comments.size() != count) at.expect("null or one for each of " + std::to_string(count) + " elements");
  return comments;
}

ipset::ElementsOperation elements_argument(const Argument& at, bool add) {
  const Argument set = at.member("set");
  ipset::ElementsOperation operation;
  operation.add = add;
  operation.name = set_name_argument(set.member("name"));
  operation.type = type_argument(set.member("type"));
  operation.family = set_family_argument(set.member("family"), operation.type);
  const Argument elements = at.member("elements");
  operation.elements = elements.bytes();
  const std::size_t length = ipset::layout_of(operation.type, operation.family).length();
  if (operation.elements.size() % length != 0) elements.expect("whole elements of " + std::to_string(length) + " bytes");
  if (add) operation.comments = comments_argument(at.member("comments"), operation.elements.size() / length);
  return operation;
}

ipset::Operation set_operation_argument(const Argument& at) {
  switch (at.member("type").word({"create", "destroy", "flush", "add", "delete"})) {
    case 0:
      return creation_argument(at.member("set"));
    case 1:
      return ipset::Destruction{set_name_argument(at.member("name"))};
    case 2:
      return ipset::Flush{set_name_argument(at.member("name"))};
    case 3:
      return elements_argument(at, true);
    default:
      return elements_argument(at, false);
  }
}

Napi::Value ipset_names(const Napi::CallbackInfo& info) {
  return SimpleCall<Names>::start(info, kNames, sockets_of(info.Env()), ipset::set_names, texts_value);
}

Napi::Value ipset_apply(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  std::vector<ipset::Operation> operations;
  for (const Argument& each : Argument(info[0], "operations", misuse).items()) {
    const Napi::HandleScope scope(info.Env());
    operations.push_back(set_operation_argument(each));
  }
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<netlink::Applied>::start(
      info, kApplySets, sockets_of(info.Env()),
      [operations = std::move(operations)](netlink::Socket& socket) { return ipset::apply(socket, operations); }, to_applied_sets);
}

Names names_argument(const Argument& at) {
  Names names;
  for (const Argument& each : at.items()) names.push_back(set_name_argument(each));
  return names;
}

Napi::Value ipset_list(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  Names names = names_argument(Argument(info[0], "names", misuse));
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<Listings>::start(
      info, kListSets, sockets_of(info.Env()),
      [names = std::move(names)](netlink::Socket& socket) { return ipset::list_sets(socket, names); }, to_listings);
}

Napi::Value ipset_digests(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  Names names = names_argument(Argument(info[0], "names", misuse));
  const bool headers = Argument(info[1], "extent", misuse).either("whole", "headers");
  const auto extent = headers ? ipset::Extent::kWithoutElements : ipset::Extent::kWhole;
  if (misuse.failed()) return misuse.raise();
  return SimpleCall<std::vector<double>>::start(
      info, kSetDigests, sockets_of(info.Env()),
      [names = std::move(names), extent](netlink::Socket& socket) { return ipset::set_digests(socket, names, extent); }, numbers_value);
}

}  // namespace

Napi::Object ipset_functions(Napi::Env env) {
  Functions functions(env);
  functions.add<ipset_names>("ipsetNames");
  functions.add<ipset_apply>("ipsetApply");
  functions.add<ipset_list>("ipsetList");
  functions.add<ipset_digests>("ipsetDigests");
  return functions.object();
}

}  // namespace pointsman::addon
