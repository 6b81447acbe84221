#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "hcn/windows/library.h"

namespace pointsman::hcn {

enum class Kind { kNetwork, kEndpoint, kLoadBalancer };

struct Listed {
  Guid id;
  /// JSON.
  std::u16string properties;
};

/// The ids of the objects of a kind.
Answer<std::vector<Guid>> ids(Library& library, Kind kind);

/// The objects of a kind, or those with some ids; those that are not there, or no longer, are left out.
Answer<std::vector<Listed>> list(Library& library, Kind kind, const std::optional<std::vector<Guid>>& ids);

enum class Verb { kCreate, kModify, kDelete };

struct Operation {
  Verb verb = Verb::kCreate;
  Kind kind = Kind::kLoadBalancer;
  /// The network of the created endpoints.
  Guid network;
  /// None: HNS chooses one for what is created.
  std::optional<Guid> id;
  /// JSON; empty for what is deleted.
  std::u16string settings;
};

/// The object's id, or why there is none.
using Outcome = std::variant<Guid, Refusal>;

/// Does one after the other, also after a refusal; an outcome for each.
Answer<std::vector<Outcome>> apply(Library& library, const std::vector<Operation>& operations);

}  // namespace pointsman::hcn
