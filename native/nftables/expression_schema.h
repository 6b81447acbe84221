#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace pointsman::nftables {

enum class FieldKind {
  kU8,
  kBe32,
  kBe64,
  kString,
  /// NFTA_DATA_VALUE or NFTA_DATA_VERDICT in a nest.
  kContent,
  /// Another expression, as in NFTA_LIST_ELEM.
  kExpression,
};

struct ValueName {
  std::uint64_t value;
  std::string_view name;
};

struct FieldSchema {
  std::uint16_t attribute;
  std::string_view name;
  FieldKind kind;
  /// Not printed: a counter's count, which differs between equal rules.
  bool volatile_value = false;
  /// The value the kernel takes when the attribute is absent, and answers in a listing.
  std::optional<std::uint64_t> implied = std::nullopt;
  /// The kernel lists the value of this attribute instead when the attribute is absent; 0 for none.
  std::uint16_t implied_by = 0;
  /// Bits that the kernel derives from other attributes.
  std::uint64_t derived_bits = 0;
  std::span<const ValueName> names = {};
};

struct ExpressionSchema {
  std::string_view name;
  /// In the order nft writes the attributes.
  std::span<const FieldSchema> fields;

  const FieldSchema* field(std::uint16_t attribute) const;
};

/// The schema of a kernel expression; null when there is none.
const ExpressionSchema* expression_schema(std::string_view name);

/// The key of `meta` or `ct` by nft's word; nothing when there is none.
std::optional<std::uint64_t> meta_key(std::string_view name);

}  // namespace pointsman::nftables
