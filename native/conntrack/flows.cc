#include "conntrack/flows.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <vector>

#include "netlink/exchange.h"

namespace pointsman::conntrack {

namespace {

using netlink::Bytes;
using netlink::ByteView;
using netlink::Error;
using netlink::ErrorKind;
using netlink::Message;
using netlink::Result;
using netlink::Socket;
using netlink::Status;

bool refuses_filter(const Error& error) {
  return error.kind == ErrorKind::kSystem &&
         (error.code == EOPNOTSUPP || error.code == EINVAL || error.code == ERANGE || error.code == EPROTONOSUPPORT);
}

bool interrupted(const Error& error) { return error.kind == ErrorKind::kSystem && error.code == EINTR; }

/// Keeps one record of each flow. Its state, and the status bits at the end, may differ between two sightings.
Bytes distinct(ByteView records, Family family) {
  const std::size_t length = record_length(family);
  constexpr std::size_t kId = sizeof(std::uint32_t);
  const std::size_t id = length - 2 * kId;
  const std::size_t state = id - 1;
  std::vector<std::size_t> starts(records.size() / length);
  std::iota(starts.begin(), starts.end(), std::size_t{0});
  const auto compare = [&](std::size_t left, std::size_t right) {
    const std::uint8_t* const one = records.data() + left * length;
    const std::uint8_t* const other = records.data() + right * length;
    const int tuples = std::memcmp(one, other, state);
    return tuples != 0 ? tuples : std::memcmp(one + id, other + id, kId);
  };
  std::ranges::sort(starts, [&](std::size_t left, std::size_t right) { return compare(left, right) < 0; });
  const auto repeated =
      std::ranges::unique(starts, [&](std::size_t left, std::size_t right) { return compare(left, right) == 0; });
  starts.erase(repeated.begin(), repeated.end());
  Bytes kept;
  kept.reserve(starts.size() * length);
  for (const std::size_t start : starts) {
    const ByteView record = records.subspan(start * length, length);
    kept.insert(kept.end(), record.begin(), record.end());
  }
  return kept;
}

Result<Bytes> dump_flows(const Dump& dump, const FlowFilter& filter, bool in_kernel, std::uint32_t& sequence) {
  Bytes seen;
  for (int attempt = 0;; ++attempt) {
    Bytes records;
    const Bytes request = encode_list(filter, ++sequence, in_kernel);
    auto dumped = dump(request, [&](const Message& message) { return decode_flow(message, filter, records); });
    if (dumped.ok()) return records;
    if (!interrupted(dumped.error())) return dumped.error();
    seen.insert(seen.end(), records.begin(), records.end());
    seen = distinct(seen, filter.family);
    if (attempt == Socket::kMaxRestarts) return seen;
  }
}

}  // namespace

Result<Bytes> list_flows(const Dump& dump, const FlowFilter& filter) {
  std::uint32_t sequence = 0;
  auto filtered = dump_flows(dump, filter, true, sequence);
  if (filtered.ok() || !refuses_filter(filtered.error())) return filtered;
  return dump_flows(dump, filter, false, sequence);
}

Result<Bytes> list_flows(Socket& socket, const FlowFilter& filter) {
  const Dump dump = [&](ByteView request, const std::function<Status(const Message&)>& on_message) {
    return socket.dump(request, on_message);
  };
  return list_flows(dump, filter);
}

Result<FlowDeletion, FlowDeletionError> delete_flows(Socket& socket, Family family, ByteView records) {
  const std::size_t length = record_length(family);
  FlowDeletion deletion;
  std::optional<FlowDeletionError> refused;
  const auto encode = [&](netlink::MessageWriter& writer, std::size_t index, std::uint32_t sequence) {
    encode_delete(writer, sequence, family, records.subspan(index * length, length));
  };
  auto exchanged = netlink::exchange_each(
      socket, records.size() / length, encode, [&](std::size_t index, const netlink::Acknowledgement& answer) {
        if (!answer.error) {
          ++deletion.deleted;
        } else if (answer.error->code == ENOENT) {
          ++deletion.missing;
        } else if (!refused) {
          refused = FlowDeletionError{*answer.error, index};
        }
      });
  if (refused) return *refused;
  if (!exchanged.ok()) return FlowDeletionError{exchanged.error(), {}};
  return deletion;
}

}  // namespace pointsman::conntrack
