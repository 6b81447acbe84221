#include "ipset/sets.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "netlink/digest.h"

namespace pointsman::ipset {

namespace {

using netlink::Acknowledgement;
using netlink::Applied;
using netlink::ByteView;
using netlink::Digest;
using netlink::Done;
using netlink::Error;
using netlink::Message;
using netlink::MessageWriter;
using netlink::Refusal;
using netlink::Result;
using netlink::Socket;
using netlink::Status;

/// There whether the code is a module or not.
constexpr const char* kLoaded = "/sys/module/ip_set";
/// One request at a time is on its way.
constexpr std::uint32_t kSequence = 1;

bool is_loaded() { return access(kLoaded, F_OK) == 0; }

/// Applies one operation after the other, each message when the one before is answered. After an element failed, the rest of its message has to come
/// before the next message.
class Application {
 public:
  explicit Application(Socket& socket) : socket_(socket) {}

  Status run(const std::vector<Operation>& operations) {
    for (index_ = 0; index_ < operations.size(); ++index_) {
      auto done = std::visit([&](const auto& operation) { return apply(operation); }, operations[index_]);
      if (!done.ok()) return done;
    }
    return Done{};
  }

  Applied take() { return std::move(applied_); }

 private:
  Status apply(const Creation& creation) {
    MessageWriter writer;
    encode_create(writer, kSequence, creation);
    return single(writer, "create set " + creation.name + " " + name_of(creation.type), creation.type);
  }

  Status apply(const Destruction& destruction) {
    MessageWriter writer;
    encode_destroy(writer, kSequence, destruction.name);
    return single(writer, "destroy set " + destruction.name, {});
  }

  Status apply(const Flush& flush) {
    MessageWriter writer;
    encode_flush(writer, kSequence, flush.name);
    return single(writer, "flush set " + flush.name, {});
  }

  Status apply(const ElementsOperation& operation) {
    const Layout layout = layout_of(operation.type, operation.family);
    const std::size_t count = operation.elements.size() / layout.length();
    for (std::size_t next = 0; next < count;) {
      MessageWriter writer;
      std::size_t done = encode_elements(writer, kSequence, operation, next);
      auto sent = send(writer, [&](const Acknowledgement& answer) {
        // An answer that names no element is about the set.
        const auto failed = failed_element(answer);
        const std::size_t at = next + std::min(failed.value_or(0), done - 1);
        Refusal refusal{index_, static_cast<std::uint32_t>(at), {}, translated(*answer.error, operation.type)};
        const ByteView element = ByteView(operation.elements).subspan(at * layout.length(), layout.length());
        refusal.object = (operation.add ? "add to set " : "delete from set ") + operation.name + ": " + describe(layout, element);
        applied_.refusals.push_back(std::move(refusal));
        done = failed ? at + 1 - next : count - next;
      });
      if (!sent.ok()) return sent;
      next += done;
    }
    return Done{};
  }

  Status single(const MessageWriter& writer, const std::string& object, std::optional<Type> type) {
    return send(writer, [&](const Acknowledgement& answer) {
      applied_.refusals.push_back({index_, {}, object, translated(*answer.error, type)});
    });
  }

  /// Sends one message; fails where nothing may be done at all.
  Status send(const MessageWriter& writer, const std::function<void(const Acknowledgement&)>& on_refusal) {
    if (writer.overflow()) return netlink::system_error(EMSGSIZE, "a request is too long");
    applied_.bytes += writer.size();
    std::optional<Error> forbidden;
    auto exchanged = socket_.request_each(writer.bytes(), kSequence, 1, [&](const Acknowledgement& answer) {
      if (!answer.error) return;
      if (answer.error->code == EPERM) forbidden = answer.error;
      on_refusal(answer);
    });
    if (exchanged.ok() && forbidden) return *forbidden;
    return exchanged;
  }

  Socket& socket_;
  std::uint32_t index_ = 0;
  Applied applied_;
};

Result<std::optional<Listing>> list_set(Socket& socket, const std::string& name, Extent extent) {
  Listing listing;
  const auto dumped = socket.dump_consistent(
      encode_list(kSequence, name, extent), [&] { listing = {}; },
      [&](const Message& message) -> Status { return decode_list(message, listing); });
  if (dumped.ok()) return std::optional(std::move(listing));
  if (dumped.error().code == ENOENT) return std::optional<Listing>();
  return translated(dumped.error(), {});
}

/// What changes as the set is used, and as rules that name it come and go, is left out.
double digest_of(const Listing& listing) {
  Digest digest;
  const Ports ports = listing.ports.value_or(Ports{});
  digest.add(Digest::Record().bytes(listing.type).number(listing.family).number(listing.max_elements).number(listing.comments)
                 .number(ports.first).number(ports.last).number(listing.plain).number(listing.size));
  const ByteView elements = listing.elements ? ByteView(*listing.elements) : ByteView{};
  const std::size_t count = listing.element_comments.size();
  const std::size_t length = count == 0 ? 0 : elements.size() / count;
  for (std::size_t index = 0; index < count; ++index) {
    digest.add(Digest::Record().bytes(elements.subspan(index * length, length)).bytes(listing.element_comments[index].value_or("")));
  }
  return static_cast<double>(digest.value());
}

/// One answer for each name, from what is listed of it; where ip_set is not loaded, as they are at first.
template <typename Answer, typename Convert>
Result<std::vector<Answer>> for_each_set(Socket& socket, const std::vector<std::string>& names, Extent extent, Convert convert) {
  std::vector<Answer> answers(names.size());
  if (!is_loaded()) return answers;
  for (std::size_t index = 0; index < names.size(); ++index) {
    auto listed = list_set(socket, names[index], extent);
    if (!listed.ok()) return listed.error();
    answers[index] = convert(std::move(listed.value()));
  }
  return answers;
}

}  // namespace

Result<Applied> apply(Socket& socket, const std::vector<Operation>& operations) {
  Application application(socket);
  auto run = application.run(operations);
  if (!run.ok()) return run.error();
  return application.take();
}

Result<std::vector<std::string>> set_names(Socket& socket) {
  std::vector<std::string> names;
  if (!is_loaded()) return names;
  const auto dumped = socket.dump_consistent(encode_list_names(kSequence), [&] { names.clear(); }, [&](const Message& message) -> Status {
    auto name = decode_name(message);
    if (!name.ok()) return name.error();
    names.push_back(std::move(name.value()));
    return Done{};
  });
  if (!dumped.ok()) return dumped.error();
  return names;
}

Result<std::vector<std::optional<Listing>>> list_sets(Socket& socket, const std::vector<std::string>& names) {
  using Answer = std::optional<Listing>;
  return for_each_set<Answer>(socket, names, Extent::kWhole, [](Answer&& listing) { return std::move(listing); });
}

Result<std::vector<double>> set_digests(Socket& socket, const std::vector<std::string>& names, Extent extent) {
  return for_each_set<double>(socket, names, extent,
                              [](std::optional<Listing>&& listing) { return listing ? digest_of(*listing) : 0; });
}

}  // namespace pointsman::ipset
