#include <string>
#include <variant>
#include <vector>

#include "addon/argument.h"
#include "addon/functions.h"
#include "addon/windows/hcn_call.h"
#include "addon/windows/hcn_watch.h"
#include "addon/windows/subsystems.h"
#include "hcn/windows/objects.h"

namespace pointsman::addon {

namespace {

using Guids = std::vector<hcn::Guid>;
using Operations = std::vector<hcn::Operation>;

constexpr const char* kVersion = "hcn version";
constexpr const char* kIds = "hcn ids";
constexpr const char* kList = "hcn list";
constexpr const char* kApply = "hcn apply";

/// JavaScript's own JSON: HNS takes and answers texts.
Napi::Value json(Napi::Env env, const char* function, const Napi::Value& value) {
  const auto library = env.Global().Get("JSON").As<Napi::Object>();
  return library.Get(function).As<Napi::Function>().Call({value});
}

hcn::Guid guid_argument(const Argument& at) {
  const auto guid = hcn::read_guid(at.text(0, 38));
  if (!guid) at.expect("a GUID");
  return guid.value_or(hcn::Guid{});
}

std::u16string settings_argument(const Argument& at) {
  const Napi::Value& value = at.value();
  if (value.IsEmpty() || !value.IsObject() || value.IsArray() || value.IsFunction()) {
    at.expect("an object");
    return {};
  }
  const Napi::Value text = json(value.Env(), "stringify", value);
  return !text.IsEmpty() && text.IsString() ? text.As<Napi::String>().Utf16Value() : std::u16string();
}

hcn::Kind kind_argument(const Argument& at) {
  return static_cast<hcn::Kind>(at.word({"network", "endpoint", "loadBalancer"}));
}

hcn::Operation operation_argument(const Argument& at) {
  hcn::Operation operation;
  operation.verb = static_cast<hcn::Verb>(at.member("type").word({"create", "modify", "delete"}));
  operation.kind = at.member("kind").either("endpoint", "loadBalancer") ? hcn::Kind::kLoadBalancer : hcn::Kind::kEndpoint;
  const bool creates = operation.verb == hcn::Verb::kCreate;
  const bool modifies = operation.verb == hcn::Verb::kModify;
  if (modifies && operation.kind == hcn::Kind::kEndpoint) at.member("kind").expect("\"loadBalancer\"");
  const Argument id = at.member("id");
  if (!creates || !id.is_null()) operation.id = guid_argument(id);
  if (creates && operation.kind == hcn::Kind::kEndpoint) operation.network = guid_argument(at.member("network"));
  if (creates || modifies) operation.settings = settings_argument(at.member("settings"));
  return operation;
}

std::string object_of(const hcn::Operation& operation) {
  constexpr const char* kVerbs[] = {"create", "modify", "delete"};
  const std::string id = operation.id ? " " + hcn::guid_text(*operation.id) : "";
  return std::string(kVerbs[static_cast<int>(operation.verb)]) +
         (operation.kind == hcn::Kind::kEndpoint ? " endpoint" : " load balancer") + id;
}

Napi::Value id_value(Napi::Env env, const hcn::Guid& id) { return Napi::String::New(env, hcn::guid_text(id)); }

Napi::Value to_ids(Napi::Env env, const Guids& ids) {
  const Napi::Array array = Napi::Array::New(env, ids.size());
  for (std::uint32_t index = 0; index < ids.size(); ++index) {
    const Napi::HandleScope scope(env);
    array.Set(index, id_value(env, ids[index]));
  }
  return array;
}

/// Leaves out what is not JSON: it hides nothing else.
Napi::Value to_listed(Napi::Env env, const std::vector<hcn::Listed>& listed) {
  const Napi::Array array = Napi::Array::New(env);
  std::uint32_t read = 0;
  for (const hcn::Listed& each : listed) {
    const Napi::HandleScope scope(env);
    const Napi::Value properties = json(env, "parse", Napi::String::New(env, each.properties));
    if (env.IsExceptionPending()) {
      env.GetAndClearPendingException();
      continue;
    }
    Napi::Object value = Napi::Object::New(env);
    value.Set("id", id_value(env, each.id));
    value.Set("properties", properties);
    array.Set(read++, value);
  }
  return array;
}

Napi::Value to_outcomes(Napi::Env env, const Operations& operations, const std::vector<hcn::Outcome>& outcomes) {
  const Napi::Array array = Napi::Array::New(env, outcomes.size());
  for (std::uint32_t index = 0; index < outcomes.size(); ++index) {
    const Napi::HandleScope scope(env);
    if (const auto* id = std::get_if<hcn::Guid>(&outcomes[index])) {
      array.Set(index, id_value(env, *id));
      continue;
    }
    NativeError error = from_hcn(*std::get_if<hcn::Refusal>(&outcomes[index]), kApply);
    error.object = object_of(operations[index]);
    error.index = index;
    array.Set(index, to_error_object(env, error));
  }
  return array;
}

Napi::Value hcn_version(const Napi::CallbackInfo& info) {
  return HcnCall<hcn::Version>::start(
      info.Env(), kVersion, [](hcn::Library& library) { return library.version(); },
      [](Napi::Env env, const hcn::Version& version) {
        Napi::Object value = Napi::Object::New(env);
        value.Set("major", Napi::Number::New(env, version.major));
        value.Set("minor", Napi::Number::New(env, version.minor));
        return value;
      });
}

Napi::Value hcn_ids(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const hcn::Kind kind = kind_argument(Argument(info[0], "kind", misuse));
  if (misuse.failed()) return misuse.raise();
  return HcnCall<Guids>::start(info.Env(), kIds, [kind](hcn::Library& library) { return hcn::ids(library, kind); }, to_ids);
}

Napi::Value hcn_list(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const hcn::Kind kind = kind_argument(Argument(info[0], "kind", misuse));
  const Argument some(info[1], "ids", misuse);
  std::optional<Guids> ids;
  if (!some.is_null()) {
    ids.emplace();
    for (const Argument& each : some.items()) ids->push_back(guid_argument(each));
  }
  if (misuse.failed()) return misuse.raise();
  return HcnCall<std::vector<hcn::Listed>>::start(
      info.Env(), kList, [kind, ids = std::move(ids)](hcn::Library& library) { return hcn::list(library, kind, ids); }, to_listed);
}

Napi::Value hcn_apply(const Napi::CallbackInfo& info) {
  Misuse misuse(info.Env());
  const auto operations = std::make_shared<Operations>();
  for (const Argument& each : Argument(info[0], "operations", misuse).items()) {
    const Napi::HandleScope scope(info.Env());
    operations->push_back(operation_argument(each));
  }
  if (misuse.failed()) return misuse.raise();
  return HcnCall<std::vector<hcn::Outcome>>::start(
      info.Env(), kApply, [operations](hcn::Library& library) { return hcn::apply(library, *operations); },
      [operations](Napi::Env env, const std::vector<hcn::Outcome>& outcomes) { return to_outcomes(env, *operations, outcomes); });
}

}  // namespace

Napi::Object hcn_functions(Napi::Env env) {
  Functions functions(env);
  functions.add<hcn_version>("hcnVersion");
  functions.add<hcn_ids>("hcnIds");
  functions.add<hcn_list>("hcnList");
  functions.add<hcn_apply>("hcnApply");
  functions.add<hcn_watch>("hcnWatch");
  return functions.object();
}

}  // namespace pointsman::addon
