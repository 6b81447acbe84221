#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "iptables/child_process.h"
#include "iptables/operation.h"
#include "iptables/save_parser.h"
#include "netlink/result.h"

namespace pointsman::iptables {

/// Why one of the programs did not do what it was asked to.
struct Failure {
  /// `iptables-nft-restore exit code 4: line 3: RULE_APPEND failed …`.
  std::string reason;
  /// ENOENT: no such program; EAGAIN: the lock stayed taken, or the kernel's rules changed under the program; ETIMEDOUT: killed; 0: none.
  int error_number = 0;
  /// Where the program names a line of its input.
  std::optional<std::string> object;
  std::optional<std::uint32_t> operation;
};

struct Ack {
  std::size_t bytes = 0;
  std::uint32_t rules = 0;
};

struct FoundFlavor {
  Flavor flavor = Flavor::kLegacy;
  /// `1.8.9`.
  std::string version;
};

/// The file in which the kernel names the legacy tables in use, one a line.
const char* table_names_file(Family family);

/// The flavours that are there and work here. Loads no module of the kernel to find out, unless legacy programs are all there is.
std::vector<FoundFlavor> find_flavors(const ProcessEnvironment& environment, Family family);

/// Applies the operations, table by table. What the kernel refuses because others changed its rules meanwhile is tried again.
netlink::Result<Ack, Failure> restore(const ProcessEnvironment& environment, const Transaction& transaction);

/// Lists chains. An unused table has none, and stays unused.
netlink::Result<std::vector<ChainListing>, Failure> list_chains(const ProcessEnvironment& environment, Family family, Flavor flavor,
                                                                const std::vector<Table>& tables,
                                                                const std::vector<std::string>& text_of);

/// Processor time that listings have taken in this process so far: the programs, and reading what they print. Waiting costs none, for a core, a lock or
/// our own streams.
std::chrono::microseconds listing_time();

/// Chains whose name begins with `prefix` and that have rules that packets matched, with these rules alone. An unused table has none.
netlink::Result<std::vector<ChainListing>, Failure> count_packets(const ProcessEnvironment& environment, Family family, Flavor flavor, Table table,
                                                                  const std::string& prefix);

/// A program's words as one line without its advice to read the manual, 600 bytes and an ellipsis at most, whole characters only.
std::string in_one_line(const std::string& words);

/// The number of the line that a program complains about.
std::optional<std::size_t> complained_line(const std::string& words);

}  // namespace pointsman::iptables
