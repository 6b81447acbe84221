#include "iptables/render.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <span>

#include "netlink/text.h"

namespace pointsman::iptables {

namespace {

std::string destination(netlink::ByteView endpoint) {
  const netlink::ByteView address = endpoint.first(endpoint.size() - sizeof(std::uint16_t));
  return netlink::print_endpoint(address, netlink::load_be16(endpoint.data() + address.size()));
}

/// The kernel keeps a probability in units of 2^-31 (xt_statistic), and iptables-save prints what it keeps.
std::string probability(std::size_t of) {
  constexpr double kOne = 2147483648.0;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.11f", std::round(kOne / static_cast<double>(of)) / kOne);
  return text.data();
}

const char* host_mask(Family family) {
  return family == Family::kIPv4 ? "255.255.255.255" : "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
}

void each_endpoint_rule(Family family, const EndpointRules& rules, const std::function<void(std::string_view)>& each) {
  const std::size_t length = endpoint_length(family);
  const std::size_t count = rules.endpoints.size() / length;
  const auto target = [&](std::size_t index) {
    return " -j DNAT --to-destination " + destination(netlink::ByteView(rules.endpoints).subspan(index * length, length));
  };
  const auto list = [&](std::size_t index) {
    return " --name " + rules.affinity->lists[index] + " --mask " + host_mask(family) + " --rsource";
  };
  const std::string protocol = "-p " + rules.protocol;
  if (rules.affinity) {
    const std::string remembered = " -m recent --update --seconds " + std::to_string(rules.affinity->seconds) + " --reap";
    for (std::size_t index = 0; index < count; ++index) each(protocol + remembered + list(index) + target(index));
  }
  for (std::size_t index = 0; index < count; ++index) {
    std::string text = protocol;
    if (index + 1 < count) text += " -m statistic --mode random --probability " + probability(count - index);
    if (rules.affinity) text += " -m recent --set" + list(index);
    each(text + target(index));
  }
}

Table table_of(const Operation& operation) {
  return std::visit([](const auto& each) { return each.table; }, operation);
}

}  // namespace

void each_rule(Family family, const ChainOperation& operation, const std::function<void(std::string_view)>& each) {
  for (const auto& rule : operation.rules) {
    if (const auto* text = std::get_if<TextRule>(&rule)) {
      each(text->text);
    } else {
      each_endpoint_rule(family, std::get<EndpointRules>(rule), each);
    }
  }
}

Stream::Stream(const Transaction& transaction) : transaction_(transaction) {
  std::vector<Table> tables;
  for (const Operation& operation : transaction.operations) {
    if (std::ranges::find(tables, table_of(operation)) == tables.end()) tables.push_back(table_of(operation));
  }
  for (const Table table : tables) write_table(table);
}

void Stream::write_table(Table table) {
  const auto each_of = [&]<typename Kind>(const Kind*, const auto& write) {
    for (std::uint32_t index = 0; index < transaction_.operations.size(); ++index) {
      const auto* operation = std::get_if<Kind>(&transaction_.operations[index]);
      if (operation == nullptr || operation->table != table) continue;
      begin(table, index);
      write(*operation);
    }
  };
  constexpr const ChainOperation* kChains = nullptr;
  constexpr const DeleteChainOperation* kDeletions = nullptr;
  constexpr const RuleOperation* kRules = nullptr;
  const auto declare = [&](const auto& operation) { line(":" + operation.chain + " - [0:0]"); };

  begin(table, {});
  line("*" + std::string(name_of(table)));
  each_of(kChains, declare);
  each_of(kDeletions, declare);
  each_of(kChains, [&](const ChainOperation& operation) {
    const std::string start = "-A " + operation.chain;
    each_rule(transaction_.family, operation, [&](std::string_view rule) {
      ++rules_;
      line(rule.empty() ? start : start + " " + std::string(rule));
    });
  });
  each_of(kRules, [&](const RuleOperation& operation) {
    ++rules_;
    constexpr std::array kOptions = {"-I ", "-A ", "-D "};
    line(kOptions.at(static_cast<std::size_t>(operation.verb)) + operation.chain + " " + operation.text);
  });
  each_of(kDeletions, [&](const DeleteChainOperation& operation) { line("-X " + operation.chain); });
  begin(table, {});
  line("COMMIT");
}

void Stream::begin(Table table, std::optional<std::uint32_t> operation) {
  sections_.push_back({lines_ + 1, table, operation});
}

void Stream::line(std::string_view text) {
  text_ += text;
  text_ += '\n';
  ++lines_;
}

std::optional<Stream::Place> Stream::at(std::size_t line) const {
  if (line == 0 || line > lines_) return {};
  // The last section that begins at or before the line; empty ones share their first line with their successor.
  const auto after = std::ranges::upper_bound(sections_, line, {}, &Section::first_line);
  const Section& section = *(after - 1);
  std::size_t start = 0;
  for (std::size_t count = 1; count < line; ++count) start = text_.find('\n', start) + 1;
  Place place;
  place.object = std::string(name_of(section.table)) + ": " + text_.substr(start, text_.find('\n', start) - start);
  place.operation = section.operation;
  if (!section.operation) return place;
  const auto* chain = std::get_if<ChainOperation>(&transaction_.operations[*section.operation]);
  if (chain != nullptr && chain->owner) place.object += " (" + *chain->owner + ")";
  return place;
}

}  // namespace pointsman::iptables
