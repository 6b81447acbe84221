#pragma once

#include <cstdint>

#include "netlink/byte_order.h"
#include "netlink/result.h"

namespace pointsman::probe {

struct Place {
  bool udp = false;
  /// 4 or 16 bytes, network order.
  netlink::Bytes address;
  std::uint16_t port = 0;
};

struct Attempt {
  Place to;
  /// What is sent: with UDP every `kRepeatMs` until something comes back.
  netlink::Bytes payload;
  /// With TCP, whether an answer is waited for, too, once there is a connection.
  bool reads = false;
  std::uint32_t timeout_ms = 0;
};

struct Outcome {
  /// errno; 0: a connection or an answer. ETIMEDOUT: neither, nor a refusal.
  int error = 0;
  netlink::Bytes answer;
  std::uint16_t local_port = 0;
  double milliseconds = 0;
};

/// Sends packets from a namespace, as a client there does. Only what keeps it from sending is an error.
netlink::Result<Outcome> try_to_reach(int space, const Attempt& attempt);

/// A socket that waits for clients in a namespace; the answer is a descriptor.
netlink::Result<int> wait_for_clients(int space, const Place& place);

}  // namespace pointsman::probe
