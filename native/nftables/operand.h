#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nftables/cursor.h"
#include "nftables/object.h"

namespace pointsman::nftables {

/// A value a rule loads into registers: one packet field, key or number, perhaps masked.
struct Operand {
  const Datatype* type = nullptr;
  std::uint32_t length = 0;
  /// Without its destination register.
  Expression load;
  std::uint16_t register_attribute = 0;
  /// The transport protocol that has to be matched before the load means anything.
  std::optional<std::uint8_t> transport;
  /// value & mask ^ toggle, in the register's byte order; both empty when the value is used as loaded.
  Bytes mask;
  Bytes toggle;
  /// What a hash is of, loaded before it; empty for any other value.
  std::vector<Operand> hashed;

  bool masked() const { return !mask.empty(); }
};

/// Compiles an expression that yields one value. Complains and answers nothing otherwise.
std::optional<Operand> compile_operand(const Cursor& at, Family family);
/// The same, or a `concat` of several.
std::vector<Operand> compile_operands(const Cursor& at, Family family);

/// A constant of the type: a number, a word, or for sets of bits a list of words.
std::optional<Bytes> compile_constant(const Cursor& at, const Datatype& type);

/// The register that starts `slot` words of 4 bytes into the register file, as the kernel numbers it in listings.
std::uint32_t register_of(std::size_t slot);
constexpr std::size_t kSlots = 16;

/// How many slots the operands take, each padded to whole ones.
std::size_t slots_of(const std::vector<Operand>& operands);
/// Appends the loads of `operands` to consecutive slots from `slot`; what is hashed to slots from `hashed`.
void emit_loads(const std::vector<Operand>& operands, std::size_t slot, std::vector<Expression>& to,
                std::size_t hashed = kSlots);
/// How many slots the longest of what `operands` are hashes of takes; 0 where none of them is a hash.
std::size_t hashed_slots(const std::vector<Operand>& operands);
/// Appends reg = reg & mask ^ toggle.
void emit_bitwise(std::size_t slot, const Bytes& mask, const Bytes& toggle, std::vector<Expression>& to);

}  // namespace pointsman::nftables
