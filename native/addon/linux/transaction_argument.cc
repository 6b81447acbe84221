#include "addon/linux/transaction_argument.h"

#include <linux/netfilter/nf_tables.h>

#include "addon/linux/json_argument.h"

namespace pointsman::addon {

namespace {

constexpr std::size_t kMaxName = NFT_NAME_MAXLEN - 1;
constexpr std::size_t kMaxComment = 127;
constexpr std::uint32_t kMaxCount = 100'000'000;

void read_content(const Argument& at, std::uint32_t count, nftables::Elements& to) {
  const Argument content = at.member("data");
  const Argument chains = at.member("gotoChains");
  if (to.deletion && !content.is_null()) return content.expect("null when deleting");
  if (to.deletion && !chains.is_null()) return chains.expect("null when deleting");
  if (!content.is_null() && !chains.is_null()) return chains.expect("null where there is data");
  if (!content.is_null()) {
    to.data_length = at.member("dataLength").integer(1, NFT_DATA_VALUE_MAXLEN);
    to.data = content.rows(count, "dataLength", to.data_length);
  }
  if (chains.is_null()) return;
  const auto items = chains.items();
  if (items.size() != count) chains.expect("an array of count " + std::to_string(count));
  to.goto_chains.emplace();
  to.goto_chains->reserve(items.size());
  for (const Argument& item : items) to.goto_chains->push_back(name_argument(item));
}

void read_comments(const Argument& at, std::uint32_t count, nftables::Elements& to) {
  const Argument comments = at.member("comments");
  if (comments.is_null()) return;
  const auto items = comments.items();
  if (items.size() != count) comments.expect("null or an array of count " + std::to_string(count));
  to.comments.emplace();
  to.comments->reserve(items.size());
  for (const Argument& item : items) {
    to.comments->push_back(item.is_null() ? std::nullopt : std::optional(item.text(1, kMaxComment)));
  }
}

nftables::Elements elements_argument(const Argument& at) {
  nftables::Elements elements;
  elements.deletion = at.member("verb").either("add", "delete");
  elements.set = name_argument(at.member("set"));
  const std::uint32_t count = at.member("count").integer(0, kMaxCount);
  elements.count = count;
  elements.key_length = at.member("keyLength").integer(1, NFT_DATA_VALUE_MAXLEN);
  elements.keys = at.member("keys").rows(count, "keyLength", elements.key_length);
  const Argument ends = at.member("keyEnds");
  if (!ends.is_null()) elements.key_ends = ends.rows(count, "keyLength", elements.key_length);
  read_content(at, count, elements);
  read_comments(at, count, elements);
  return elements;
}

}  // namespace

nftables::Family family_argument(const Argument& at) {
  return at.either("ip", "ip6") ? nftables::Family::kIp6 : nftables::Family::kIp;
}

std::string name_argument(const Argument& at) { return at.text(1, kMaxName); }

nftables::Transaction transaction_argument(const Argument& at) {
  nftables::Transaction transaction;
  transaction.family = family_argument(at.member("family"));
  transaction.table = name_argument(at.member("table"));
  for (const Argument& operation : at.member("operations").items()) {
    if (operation.member("type").either("commands", "elements")) {
      transaction.operations.emplace_back(elements_argument(operation));
    } else {
      transaction.operations.emplace_back(nftables::Commands{json_argument(operation.member("commands"))});
    }
  }
  return transaction;
}

}  // namespace pointsman::addon
