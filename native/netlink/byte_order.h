#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace pointsman::netlink {

using Bytes = std::vector<std::uint8_t>;
using ByteView = std::span<const std::uint8_t>;

/// Netlink pads messages and attributes to 4 bytes.
constexpr std::size_t align4(std::size_t length) { return (length + 3) & ~std::size_t{3}; }

// The callers of the load functions below have checked that `from` holds enough bytes.

inline std::uint16_t load_be16(const std::uint8_t* from) {
  return static_cast<std::uint16_t>(from[0] << 8 | from[1]);
}

inline std::uint32_t load_be32(const std::uint8_t* from) {
  return static_cast<std::uint32_t>(from[0]) << 24 | static_cast<std::uint32_t>(from[1]) << 16 |
         static_cast<std::uint32_t>(from[2]) << 8 | static_cast<std::uint32_t>(from[3]);
}

inline std::uint64_t load_be64(const std::uint8_t* from) {
  return static_cast<std::uint64_t>(load_be32(from)) << 32 | load_be32(from + 4);
}

inline std::uint16_t load_host16(const std::uint8_t* from) {
  std::uint16_t value = 0;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline std::uint32_t load_host32(const std::uint8_t* from) {
  std::uint32_t value = 0;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline void store_be16(std::uint8_t* to, std::uint16_t value) {
  to[0] = static_cast<std::uint8_t>(value >> 8);
  to[1] = static_cast<std::uint8_t>(value);
}

inline void store_be32(std::uint8_t* to, std::uint32_t value) {
  store_be16(to, static_cast<std::uint16_t>(value >> 16));
  store_be16(to + 2, static_cast<std::uint16_t>(value));
}

inline void store_be64(std::uint8_t* to, std::uint64_t value) {
  store_be32(to, static_cast<std::uint32_t>(value >> 32));
  store_be32(to + 4, static_cast<std::uint32_t>(value));
}

inline void store_host16(std::uint8_t* to, std::uint16_t value) { std::memcpy(to, &value, sizeof value); }

inline void store_host32(std::uint8_t* to, std::uint32_t value) { std::memcpy(to, &value, sizeof value); }

}  // namespace pointsman::netlink
