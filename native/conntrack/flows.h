#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "conntrack/flow.h"
#include "netlink/socket.h"

namespace pointsman::conntrack {

/// The records of all flows that pass the filter. Filtered in the kernel where it can (Linux 5.9), here as well. When the kernel keeps
/// reporting interruptions, the union of what the attempts saw: a few flows may be missing or gone, which deletion by id bears.
netlink::Result<netlink::Bytes> list_flows(netlink::Socket& socket, const FlowFilter& filter);

/// One attempt at a dump: sends the request and hands over every answer, as Socket::dump does.
using Dump =
    std::function<netlink::Status(netlink::ByteView request, const std::function<netlink::Status(const netlink::Message&)>&)>;

/// `list_flows` over any source of answers.
netlink::Result<netlink::Bytes> list_flows(const Dump& dump, const FlowFilter& filter);

struct FlowDeletion {
  std::size_t deleted = 0;
  /// Gone or replaced before their turn.
  std::size_t missing = 0;
};

/// Why a flow stayed.
struct FlowDeletionError {
  netlink::Error error;
  /// The index of the first flow refused; nothing when the exchange itself failed.
  std::optional<std::size_t> index;
};

/// Deletes flows by original tuple, zone and id. A flow that the kernel refuses does not keep the others from their turn; the error is that
/// of the first. `records` holds a whole number of records.
netlink::Result<FlowDeletion, FlowDeletionError> delete_flows(netlink::Socket& socket, Family family,
                                                              netlink::ByteView records);

}  // namespace pointsman::conntrack
