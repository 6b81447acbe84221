#pragma once

#include <cstdint>

#include "netlink/byte_order.h"

namespace pointsman::netlink {

/// A number for a multiset of records: the same for the same records, whatever their order. Others have another number, except for a collision; it
/// does not withstand an attacker.
class Digest {
 public:
  /// One record, as its fields come.
  class Record {
   public:
    Record& number(std::uint64_t value) {
      state_ = mixed(state_ ^ value);
      return *this;
    }

    /// With their length, so that fields do not run into each other.
    template <typename Text>
    Record& bytes(const Text& text) {
      for (const auto byte : text) state_ = (state_ ^ static_cast<std::uint8_t>(byte)) * kPrime;
      return number(text.size());
    }

    std::uint64_t value() const { return state_; }

   private:
    std::uint64_t state_ = kBasis;
  };

  void add(const Record& record) { sum_ += mixed(record.value()); }

  /// Below 2^53, so that a double holds it; not 0, which is for what is not there.
  std::uint64_t value() const { return (mixed(sum_) >> kSpare) | 1; }

 private:
  // FNV-1a.
  static constexpr std::uint64_t kBasis = 0xcbf29ce484222325;
  static constexpr std::uint64_t kPrime = 0x100000001b3;
  static constexpr int kSpare = 64 - 53;

  /// The end of SplitMix64: every bit of what goes in changes about half of those that come out.
  static constexpr std::uint64_t mixed(std::uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
  }

  std::uint64_t sum_ = 0;
};

}  // namespace pointsman::netlink
