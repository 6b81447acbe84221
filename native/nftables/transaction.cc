#include "nftables/transaction.h"

#include <linux/netfilter/nfnetlink.h>

#include <cerrno>
#include <mutex>

#include "nftables/listing.h"

namespace pointsman::nftables {

namespace {
// What a send buffer may grow to with CAP_NET_ADMIN; a batch of a million elements has 120 MB.
constexpr std::size_t kMaxBatch = std::size_t{512} * 1024 * 1024;
// Notifications of a batch of this size, some thousand elements, cost a few milliseconds.
constexpr std::size_t kPausingBatch = std::size_t{256} * 1024;

Failure compiler_failure(std::string message, std::optional<std::uint32_t> operation) {
  Failure failure;
  failure.cause.message = std::move(message);
  failure.refused_by_compiler = true;
  failure.operation = operation;
  return failure;
}

Failure kernel_failure(netlink::Error error) {
  Failure failure;
  failure.cause = std::move(error);
  return failure;
}
}  // namespace

netlink::Result<EncodedTransaction, Failure> EncodedTransaction::encode(const Transaction& transaction) {
  static_assert(kSubsystem == NFNL_SUBSYS_NFTABLES);
  EncodedTransaction encoded(transaction);
  // A large buffer that grows is there twice while it does.
  std::size_t expected = 0;
  for (const Operation& operation : transaction.operations) {
    if (const auto* elements = std::get_if<Elements>(&operation)) expected += elements_size(*elements);
  }
  encoded.batch_.writer().reserve(encoded.batch_.bytes().size() + expected);
  for (std::uint32_t index = 0; index < transaction.operations.size(); ++index) {
    const Operation& operation = transaction.operations[index];
    if (const auto* elements = std::get_if<Elements>(&operation)) encoded.add_elements(index, *elements);
    const auto* commands = std::get_if<Commands>(&operation);
    if (commands == nullptr) continue;
    if (auto refused = encoded.add_commands(index, *commands)) return compiler_failure(std::move(refused->message), index);
  }
  if (encoded.batch_.overflow()) {
    return compiler_failure("a rule, name or element is longer than a netlink attribute holds", std::nullopt);
  }
  encoded.batch_.finish();
  return encoded;
}

const Set* EncodedTransaction::declared(std::string_view name) const {
  for (auto command = commands_.rbegin(); command != commands_.rend(); ++command) {
    const auto* set = std::get_if<Set>(&command->object);
    if (set == nullptr || set->name != name || command->verb == Verb::kFlush) continue;
    return command->verb == Verb::kDelete ? nullptr : set;
  }
  return nullptr;
}

std::optional<CompileError> EncodedTransaction::add_commands(std::uint32_t operation, const Commands& commands) {
  auto compiled = compile_commands(transaction_->family, transaction_->table, commands.list,
                                   [this](std::string_view name) { return declared(name); });
  if (!compiled.ok()) return std::move(compiled.error());
  for (Command& command : compiled.value()) {
    if (std::holds_alternative<Set>(command.object)) ++sets_;
    origins_.push_back(Origin{operation, batch_.bytes().size(), commands_.size()});
    write_command(batch_, transaction_->family, transaction_->table, command, sets_);
    commands_.push_back(std::move(command));
  }
  return std::nullopt;
}

void EncodedTransaction::add_elements(std::uint32_t operation, const Elements& elements) {
  for (std::size_t first = 0; first < elements.count;) {
    Origin origin{operation, batch_.bytes().size(), std::nullopt};
    origin.first_element = first;
    origin.elements = write_elements(batch_, transaction_->family, transaction_->table, elements, first);
    first += origin.elements;
    origins_.push_back(origin);
  }
}

std::string EncodedTransaction::element_text(const Elements& elements, std::size_t index, netlink::Socket* socket) const {
  std::optional<Set> set;
  if (const Set* own = declared(elements.set)) set = *own;
  if (!set && socket != nullptr) {
    if (auto found = find_set(*socket, transaction_->family, transaction_->table, elements.set); found.ok()) {
      set = std::move(found.value());
    }
  }
  const std::string verb = elements.deletion ? "delete element " : "add element ";
  const ByteView key = elements.key(index);
  return verb + elements.set + " " + (set ? key_text(set->key_type, key) : hex_text(key));
}

Failure EncodedTransaction::explain(netlink::Error error, netlink::Socket* socket) const {
  const std::optional<std::uint32_t> sequence = error.sequence;
  const std::optional<std::uint32_t> offset = error.offset;
  Failure failure = kernel_failure(std::move(error));
  // Sequence number 0 is the batch's own frame: no rights, or a failing commit.
  if (!sequence || *sequence == 0 || *sequence > origins_.size()) return failure;
  const Origin& origin = origins_[netlink::Batch::index_of(*sequence)];
  failure.operation = origin.operation;
  if (origin.command) {
    failure.object = command_text(commands_[*origin.command]);
    return failure;
  }
  const auto& elements = *std::get_if<Elements>(&transaction_->operations[origin.operation]);
  std::optional<std::size_t> place;
  if (offset) place = element_at(batch_.bytes().subspan(origin.start), *offset);
  if (!place && !offset && origin.elements == 1) place = 0;
  if (!place) {
    failure.object = (elements.deletion ? "delete elements of " : "add elements to ") + elements.set;
    return failure;
  }
  const std::size_t index = origin.first_element + *place;
  failure.element = static_cast<std::uint32_t>(index);
  failure.object = element_text(elements, index, socket);
  return failure;
}

netlink::Result<Ack, Failure> transact(const Transaction& transaction, netlink::SocketPool& sockets, Watches& watches) {
  auto encoded = EncodedTransaction::encode(transaction);
  if (!encoded.ok()) return std::move(encoded.error());
  const EncodedTransaction& batch = encoded.value();
  if (batch.messages() == 0) return Ack{};
  auto socket = sockets.take();
  if (!socket.ok()) return kernel_failure(std::move(socket.error()));
  std::optional<Watches::Pause> pause;
  if (batch.bytes().size() >= kPausingBatch) pause.emplace(watches);
  auto sent = [&] {
    const std::lock_guard lock(sockets.transaction());
    return netlink::send_batch(socket.value(), batch.bytes(), batch.messages());
  }();
  if (!sent.ok()) {
    Failure failure = batch.explain(std::move(sent.error()), &socket.value());
    if (failure.cause.code == EPERM) failure.owner = table_owner(socket.value(), transaction.family, transaction.table);
    return failure;
  }
  sockets.give_back(std::move(socket.value()));
  return Ack{batch.messages(), batch.bytes().size()};
}

netlink::Result<std::size_t> max_batch(netlink::SocketPool& sockets) {
  auto socket = sockets.take();
  if (!socket.ok()) return socket.error();
  const std::size_t most = socket.value().reserve_send(kMaxBatch);
  sockets.give_back(std::move(socket.value()));
  return most;
}

}  // namespace pointsman::nftables
