#include "iptables/digest.h"

#include <array>
#include <cstdio>

namespace pointsman::iptables {

void Digest::take(unsigned char byte) {
  constexpr std::uint64_t kPrime = 0x100000001b3;
  state_ = (state_ ^ byte) * kPrime;
}

void Digest::add(std::string_view rule) {
  // Bytes that no word contains end words and rules.
  constexpr unsigned char kWordEnd = '\0';
  constexpr unsigned char kRuleEnd = '\n';
  bool quoted = false;
  bool in_word = false;
  for (std::size_t at = 0; at < rule.size(); ++at) {
    char byte = rule[at];
    if (!quoted && (byte == ' ' || byte == '\t')) {
      if (in_word) take(kWordEnd);
      in_word = false;
      continue;
    }
    in_word = true;
    if (byte == '"') {
      quoted = !quoted;
      continue;
    }
    if (quoted && byte == '\\' && at + 1 < rule.size()) byte = rule[++at];
    take(static_cast<unsigned char>(byte));
  }
  if (in_word) take(kWordEnd);
  take(kRuleEnd);
}

std::string Digest::text() const {
  std::uint64_t mixed = state_;
  mixed = (mixed ^ mixed >> 33) * 0xff51afd7ed558ccd;
  mixed = (mixed ^ mixed >> 33) * 0xc4ceb9fe1a85ec53;
  mixed ^= mixed >> 33;
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(mixed));
  return digits.data();
}

}  // namespace pointsman::iptables
