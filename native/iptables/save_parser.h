#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "iptables/digest.h"
#include "netlink/result.h"

namespace pointsman::iptables {

/// A rule that packets matched.
struct CountedRule {
  std::string rule;
  std::uint64_t packets = 0;
};

struct ChainListing {
  std::string table;
  std::string name;
  /// The policy of a built-in chain.
  std::optional<std::string> policy;
  std::uint32_t rule_count = 0;
  /// Absent: the programs cannot list the chain.
  std::optional<std::string> digest;
  /// Where they are kept: of built-in chains, and of those the parser was asked for.
  std::optional<std::vector<std::string>> rules;
  /// The counted rules of the same chains, where counts are read.
  std::vector<CountedRule> counted;
};

/// Reads what iptables-save prints, in pieces of any size. It takes no part of a listing for the whole: a line that does not belong there, or
/// an end before COMMIT, is an error.
class SaveParser {
 public:
  /// @param text_of keep the rules of chains whose name begins with one of these.
  /// @param tables keep the chains of these, whatever else is in the listing.
  SaveParser(std::vector<std::string> text_of, std::vector<std::string> tables) : text_of_(std::move(text_of)), tables_(std::move(tables)) {}

  void feed(std::string_view piece);
  /// The chains, table by table in the order of the tables, or what is wrong with the listing.
  netlink::Result<std::vector<ChainListing>, std::string> finish();
  /// In place of `finish`, for a listing that broke off: the chains of tables that were complete, and those of the last table without digests and rules.
  netlink::Result<std::vector<ChainListing>, std::string> break_off();
  /// Tables that were listed whole, and those that the program says it cannot list. Others are not there.
  const std::vector<std::string>& complete() const { return complete_; }
  const std::vector<std::string>& refused() const { return refused_; }

 private:
  struct Chain {
    ChainListing listing;
    Digest digest;
  };

  void take_line(std::string_view line);
  void take_comment(std::string_view line);
  /// The place of a table among those that are kept.
  std::optional<std::size_t> place_of(std::string_view table) const;
  void take_chain(std::string_view declaration);
  /// @param packets that it counted; 0 where the listing does not show them.
  void take_rule(std::string_view rule, std::uint64_t packets);
  void complain(const char* what, std::string_view line);

  std::vector<std::string> text_of_;
  std::vector<std::string> tables_;
  std::string partial_;
  std::size_t line_number_ = 0;
  std::optional<std::string> table_;
  std::vector<std::string> complete_;
  std::vector<std::string> refused_;
  /// Whether chains of the current table are kept.
  bool kept_ = false;
  std::vector<Chain> chains_;
  /// The chains of the current table.
  std::unordered_map<std::string, std::size_t> by_name_;
  std::optional<std::string> complaint_;
};

}  // namespace pointsman::iptables
