#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pointsman::iptables {

/// Over the rules of a chain in order: equal for equal words, however they are quoted and spaced. FNV-1a with 64 bits and a final mix;
/// it detects accidental differences, not forgeries.
class Digest {
 public:
  /// @param rule a specification without its chain.
  void add(std::string_view rule);
  /// 16 hexadecimal digits.
  std::string text() const;

 private:
  void take(unsigned char byte);

  std::uint64_t state_ = 0xcbf29ce484222325;
};

}  // namespace pointsman::iptables
