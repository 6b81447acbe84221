#include "hcn/windows/objects.h"

#include <algorithm>
#include <cstring>

namespace pointsman::hcn {

namespace {

constexpr const wchar_t* kQuery = L"{\"SchemaVersion\":{\"Major\":2,\"Minor\":0}}";

const KindCalls& calls_of(const Calls& calls, Kind kind) {
  if (kind == Kind::kNetwork) return calls.networks;
  return kind == Kind::kEndpoint ? calls.endpoints : calls.load_balancers;
}

GUID to_windows(const Guid& guid) {
  GUID converted{};
  converted.Data1 = guid.data1;
  converted.Data2 = guid.data2;
  converted.Data3 = guid.data3;
  std::copy(std::begin(guid.data4), std::end(guid.data4), std::begin(converted.Data4));
  return converted;
}

/// Texts for Windows. Its characters have 16 bits as well, but are another type.
std::wstring wide(const std::u16string& text) { return {text.begin(), text.end()}; }

/// An open object, which is closed in the end.
class Object {
 public:
  explicit Object(const KindCalls& calls) : calls_(&calls) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  ~Object() {
    if (handle_ != nullptr) calls_->close.function(handle_);
  }

  void** place() { return &handle_; }
  void* handle() const { return handle_; }

  std::optional<Refusal> open(const Guid& id) {
    TaskText record;
    const HRESULT result = calls_->open.function(to_windows(id), &handle_, record.place());
    return refusal(calls_->open.name, result, record);
  }

  Answer<std::u16string> properties() const {
    TaskText properties;
    TaskText record;
    const HRESULT result = calls_->query.function(handle_, kQuery, properties.place(), record.place());
    if (auto refused = refusal(calls_->query.name, result, record)) return *std::move(refused);
    return properties.text();
  }

 private:
  const KindCalls* calls_;
  void* handle_ = nullptr;
};

bool is_missing(const Refusal& refused) {
  constexpr std::uint32_t kMissing[] = {0x80070490, 0x803b0001, 0x803b0002};
  return std::find(std::begin(kMissing), std::end(kMissing), refused.hresult) != std::end(kMissing);
}

/// Whether it is no object's own: what is missing then may all be there. Others' objects may be such that HNS cannot show them, and must not hide the rest.
bool concerns_service(const Refusal& refused) {
  constexpr std::uint32_t kRpc = 0x800706;
  constexpr std::uint32_t kOthers[] = {0x8007000E, 0x80070015, 0x800700AA, 0x80070102, 0x80070426, 0x8007045B, 0x800705AA, 0x800705B4, 0x803B0020};
  return refused.hresult >> 8 == kRpc || std::find(std::begin(kOthers), std::end(kOthers), refused.hresult) != std::end(kOthers);
}

Answer<std::vector<Guid>> enumerate(const KindCalls& calls) {
  TaskText ids;
  TaskText record;
  const HRESULT result = calls.enumerate.function(kQuery, ids.place(), record.place());
  if (auto refused = refusal(calls.enumerate.name, result, record)) return *std::move(refused);
  const std::u16string text = ids.text();
  if (auto read = read_guids(text)) return *std::move(read);
  return Refusal{0, calls.enumerate.name, to_utf8(text), "no list of ids"};
}

/// A network that is closed with the last who holds it.
Answer<std::shared_ptr<void>> open_network(const KindCalls& calls, const Guid& id) {
  void* handle = nullptr;
  TaskText record;
  const HRESULT result = calls.open.function(to_windows(id), &handle, record.place());
  std::shared_ptr<void> network(handle, [close = calls.close.function](void* held) {
    if (held != nullptr) close(held);
  });
  if (auto refused = refusal(calls.open.name, result, record)) return *std::move(refused);
  return network;
}

/// Does operations of one call. The network that endpoints are made in stays open for the next of them, and no longer: a network that a process holds open
/// cannot be removed.
class Job {
 public:
  Job(Library& library, const Calls& calls) : library_(library), calls_(calls) {}

  Outcome run(const Operation& operation) {
    switch (operation.verb) {
      case Verb::kCreate:
        return operation.kind == Kind::kEndpoint ? create_endpoint(operation) : create_load_balancer(operation);
      case Verb::kModify:
        return modify(operation);
      case Verb::kDelete:
        break;
    }
    return remove(operation);
  }

 private:
  /// A network that was kept may be gone, or HNS have started anew: whatever is refused in it is tried once more in one that was opened just now.
  Outcome create_endpoint(const Operation& operation) {
    if (network_ != nullptr && network_id_ == operation.network) {
      Outcome outcome = create_endpoint_in(network_.get(), operation);
      if (std::holds_alternative<Guid>(outcome)) return outcome;
      network_ = nullptr;
    }
    const auto opened = open_network(calls_.networks, operation.network);
    if (!opened.ok()) return opened.error();
    Outcome outcome = create_endpoint_in(opened.value().get(), operation);
    if (std::holds_alternative<Guid>(outcome)) {
      network_ = opened.value();
      network_id_ = operation.network;
    }
    return outcome;
  }

  Outcome create_endpoint_in(void* network, const Operation& operation) {
    const auto& [name, create] = calls_.create_endpoint;
    Object endpoint(calls_.endpoints);
    TaskText record;
    const HRESULT result = create(network, to_windows(operation.id.value_or(Guid{})), wide(operation.settings).c_str(), endpoint.place(),
                                  record.place());
    if (auto refused = refusal(name, result, record)) return *std::move(refused);
    return id_of(endpoint, operation, name);
  }

  Outcome create_load_balancer(const Operation& operation) {
    const auto& [name, create] = calls_.create_load_balancer;
    Object balancer(calls_.load_balancers);
    TaskText record;
    const HRESULT result =
        create(to_windows(operation.id.value_or(Guid{})), wide(operation.settings).c_str(), balancer.place(), record.place());
    if (auto refused = refusal(name, result, record)) return *std::move(refused);
    return id_of(balancer, operation, name);
  }

  Outcome modify(const Operation& operation) {
    const Guid id = operation.id.value_or(Guid{});
    Object balancer(calls_.load_balancers);
    if (auto refused = balancer.open(id)) return *std::move(refused);
    const auto& [name, change] = calls_.modify_load_balancer;
    TaskText record;
    const HRESULT result = change(balancer.handle(), wide(operation.settings).c_str(), record.place());
    if (auto refused = refusal(name, result, record)) return *std::move(refused);
    return id;
  }

  Outcome remove(const Operation& operation) {
    const Guid id = operation.id.value_or(Guid{});
    const auto& [name, erase] = calls_of(calls_, operation.kind).erase;
    TaskText record;
    const HRESULT result = erase(to_windows(id), record.place());
    if (auto refused = refusal(name, result, record)) return *std::move(refused);
    return id;
  }

  /// The id that HNS gave to what was created. A requested id holds where HNS reports none, or where HNS is known to take it.
  Outcome id_of(const Object& created, const Operation& operation, const char* call) {
    if (operation.id && library_.takes_ids) return *operation.id;
    const auto properties = created.properties();
    const auto id = properties.ok() ? read_id(properties.value()) : std::nullopt;
    if (operation.id && id) library_.takes_ids = *id == *operation.id;
    if (id) return *id;
    if (operation.id) return *operation.id;
    return properties.ok() ? Refusal{0, call, to_utf8(properties.value()), "no id"} : properties.error();
  }

  Library& library_;
  const Calls& calls_;
  std::shared_ptr<void> network_;
  Guid network_id_;
};

}  // namespace

Answer<std::vector<Guid>> ids(Library& library, Kind kind) {
  const auto loaded = library.calls();
  if (!loaded.ok()) return loaded.error();
  return enumerate(calls_of(loaded.value(), kind));
}

Answer<std::vector<Listed>> list(Library& library, Kind kind, const std::optional<std::vector<Guid>>& ids) {
  const auto loaded = library.calls();
  if (!loaded.ok()) return loaded.error();
  const KindCalls& calls = calls_of(loaded.value(), kind);
  const auto known = ids ? Answer<std::vector<Guid>>(*ids) : enumerate(calls);
  if (!known.ok()) return known.error();
  std::vector<Listed> listed;
  std::optional<Refusal> unreadable;
  for (const Guid& id : known.value()) {
    Object object(calls);
    auto refused = object.open(id);
    if (!refused) {
      auto properties = object.properties();
      if (properties.ok()) {
        listed.push_back({id, std::move(properties.value())});
        continue;
      }
      refused = properties.error();
    }
    if (concerns_service(*refused)) return *std::move(refused);
    if (!is_missing(*refused)) unreadable = std::move(refused);
  }
  // What hides all of several is no object's own either.
  if (listed.empty() && unreadable && known.value().size() > 1) return *std::move(unreadable);
  return listed;
}

Answer<std::vector<Outcome>> apply(Library& library, const std::vector<Operation>& operations) {
  const auto loaded = library.calls();
  if (!loaded.ok()) return loaded.error();
  Job job(library, loaded.value());
  std::vector<Outcome> outcomes;
  outcomes.reserve(operations.size());
  for (const Operation& operation : operations) outcomes.push_back(job.run(operation));
  return outcomes;
}

}  // namespace pointsman::hcn
