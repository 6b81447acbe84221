#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "iptables/operation.h"

namespace pointsman::iptables {

/// Calls `each` with the specification of every rule, in order, without the chain.
void each_rule(Family family, const ChainOperation& operation, const std::function<void(std::string_view)>& each);

/// Input of `iptables-restore --noflush`, table after table in the order in which the operations first name them. Within a table:
/// every chain that is written or removed is declared (which empties it), then filled. Rules in foreign chains follow in their order.
/// Removed chains come last, when nothing refers to them any more.
class Stream {
 public:
  explicit Stream(const Transaction& transaction);

  const std::string& text() const { return text_; }
  /// `-A`, `-I` and `-D` lines.
  std::uint32_t rules() const { return rules_; }

  struct Place {
    /// `nat: -A KUBE-SVC-X … (default/web)`, without the owner where there is none.
    std::string object;
    /// Index into the operations; null for lines that belong to none, such as COMMIT.
    std::optional<std::uint32_t> operation;
  };
  /// What stands in a line, counted from 1 as the programs count; null when there is no such line.
  std::optional<Place> at(std::size_t line) const;

 private:
  struct Section {
    std::size_t first_line;
    Table table;
    std::optional<std::uint32_t> operation;
  };

  void write_table(Table table);
  void line(std::string_view text);
  void begin(Table table, std::optional<std::uint32_t> operation);

  const Transaction& transaction_;
  std::string text_;
  std::size_t lines_ = 0;
  std::uint32_t rules_ = 0;
  std::vector<Section> sections_;
};

}  // namespace pointsman::iptables
