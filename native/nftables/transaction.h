#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "netlink/batch.h"
#include "netlink/result.h"
#include "netlink/socket_pool.h"
#include "nftables/compile.h"
#include "nftables/encode.h"
#include "nftables/object.h"
#include "nftables/watch.h"

namespace pointsman::nftables {

/// An array of commands in the libnftables JSON schema.
struct Commands {
  json::Value list;
};

using Operation = std::variant<Commands, Elements>;

/// Operations on one table that happen together or not at all.
struct Transaction {
  Family family = Family::kIp;
  std::string table;
  std::vector<Operation> operations;
};

/// Why a transaction did not happen.
struct Failure {
  netlink::Error cause;
  /// It never left for the kernel: a command was not in the schema's subset, `cause.message` names the place.
  bool refused_by_compiler = false;
  /// The failing command or element as text, the index of its operation, and of the element in that; nothing when it is not one's fault.
  std::optional<std::string> object;
  std::optional<std::uint32_t> operation;
  std::optional<std::uint32_t> element;
  /// The netlink port of another socket that owns the table (NFT_TABLE_F_OWNER): until it is closed, the kernel answers EPERM to all others.
  std::optional<std::uint32_t> owner;
};

struct Ack {
  std::uint32_t messages = 0;
  std::size_t bytes = 0;
};

/// A transaction as the bytes of its batch, with the way back from each message to its operation.
class EncodedTransaction {
 public:
  /// `transaction` is referred to, and outlives the result.
  static netlink::Result<EncodedTransaction, Failure> encode(const Transaction& transaction);

  ByteView bytes() const { return batch_.bytes(); }
  std::uint32_t messages() const { return batch_.messages(); }

  /// The failure that the kernel's refusal stands for. `socket` is asked for the declaration of a set that the transaction only fills.
  Failure explain(netlink::Error error, netlink::Socket* socket) const;

  /// The declaration of a set made in this transaction; null when there is none.
  const Set* declared(std::string_view name) const;

 private:
  struct Origin {
    std::uint32_t operation;
    /// The start of the message in the batch.
    std::size_t start;
    /// Index into `commands_`; nothing for elements.
    std::optional<std::size_t> command;
    std::size_t first_element = 0;
    std::size_t elements = 0;
  };

  explicit EncodedTransaction(const Transaction& transaction)
      : transaction_(&transaction), batch_(kSubsystem) {}
  std::optional<CompileError> add_commands(std::uint32_t operation, const Commands& commands);
  void add_elements(std::uint32_t operation, const Elements& elements);
  std::string element_text(const Elements& elements, std::size_t index, netlink::Socket* socket) const;

  static constexpr std::uint8_t kSubsystem = 10;  // NFNL_SUBSYS_NFTABLES

  const Transaction* transaction_;
  netlink::Batch batch_;
  std::vector<Command> commands_;
  std::vector<Origin> origins_;
  std::uint32_t sets_ = 0;
};

/// Encodes, sends and waits for the kernel's verdict. An empty transaction succeeds without a system call; a large one pauses `watches`.
netlink::Result<Ack, Failure> transact(const Transaction& transaction, netlink::SocketPool& sockets, Watches& watches);

/// The largest batch a socket takes here, in bytes.
netlink::Result<std::size_t> max_batch(netlink::SocketPool& sockets);

}  // namespace pointsman::nftables
