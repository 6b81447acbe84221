#include "route/link.h"

#include <net/if.h>

#include <array>
#include <cerrno>
#include <map>

#include "netlink/text.h"
#include "route/message.h"

namespace pointsman::route {

namespace {

using netlink::Applied;
using netlink::Bytes;
using netlink::ByteView;
using netlink::Done;
using netlink::Message;
using netlink::Refusal;
using netlink::Result;
using netlink::Socket;
using netlink::Status;
using netlink::Step;

/// The sequence number of requests that are sent alone.
constexpr std::uint32_t kSequence = 1;

Result<std::vector<LinkAddress>> list_addresses(Socket& socket) {
  std::vector<LinkAddress> addresses;
  const auto dumped =
      socket.dump_consistent(encode_addresses(kSequence), [&] { addresses.clear(); }, [&](const Message& answer) -> Status {
        auto address = decode_address(answer);
        if (!address.ok()) return address.error();
        addresses.push_back(std::move(address.value()));
        return Done{};
      });
  if (!dumped.ok()) return dumped.error();
  return addresses;
}

/// Whether a request was granted; false where the kernel answered `no`.
Result<bool> granted(Socket& socket, ByteView request, int no) {
  const auto answered = socket.request(request, [](const Message&) -> Status { return Done{}; });
  if (answered.ok()) return true;
  if (answered.error().code == no) return false;
  return answered.error();
}

}  // namespace

Result<std::optional<std::vector<Bytes>>> link_addresses(Socket& socket, const std::string& name) {
  using Answer = std::optional<std::vector<Bytes>>;
  const std::uint32_t link = if_nametoindex(name.c_str());
  if (link == 0) return errno == ENODEV ? Result<Answer>(Answer{}) : Result<Answer>(netlink::system_error(errno, name));
  auto listed = list_addresses(socket);
  if (!listed.ok()) return listed.error();
  std::vector<Bytes> addresses;
  for (LinkAddress& each : listed.value()) {
    if (each.link == link) addresses.push_back(std::move(each.address));
  }
  return Answer(std::move(addresses));
}

Result<std::vector<LinkAddresses>> all_addresses(Socket& socket) {
  const auto listed = list_addresses(socket);
  if (!listed.ok()) return listed.error();
  std::map<std::uint32_t, LinkAddresses> links;
  for (const LinkAddress& each : listed.value()) {
    LinkAddresses& link = links[each.link];
    Bytes& family = each.address.size() == 4 ? link.ipv4 : link.ipv6;
    family.insert(family.end(), each.address.begin(), each.address.end());
  }
  std::vector<LinkAddresses> named;
  for (auto& [index, link] : links) {
    std::array<char, IF_NAMESIZE> name{};
    // One that went since then has no addresses.
    if (if_indextoname(index, name.data()) == nullptr) continue;
    link.link = name.data();
    named.push_back(std::move(link));
  }
  return named;
}

Result<bool> ensure_dummy(Socket& socket, const std::string& name) { return granted(socket, encode_new_dummy(kSequence, name), EEXIST); }

Result<bool> delete_link(Socket& socket, const std::string& name) { return granted(socket, encode_delete_link(kSequence, name), ENODEV); }

Result<Applied> apply_addresses(Socket& socket, const std::string& name, const std::vector<AddressOperation>& operations) {
  const std::uint32_t link = if_nametoindex(name.c_str());
  if (link == 0) return netlink::system_error(errno, name);
  const auto count = [&](std::size_t operation) { return operations[operation].addresses.size() / operations[operation].length; };
  const auto address_of = [&](const Step& step) {
    const AddressOperation& operation = operations[step.operation];
    return ByteView(operation.addresses).subspan(step.element * operation.length, operation.length);
  };
  const auto encode = [&](netlink::MessageWriter& writer, const Step& step, std::uint32_t sequence) {
    encode_address(writer, sequence, operations[step.operation].add, link, address_of(step));
  };
  return netlink::exchange_steps(socket, operations.size(), count, encode, [&](const Step& step) {
    const char* verb = operations[step.operation].add ? "add address " : "delete address ";
    return Refusal{step.operation, step.element, verb + netlink::print_address(address_of(step)) + " on " + name, {}};
  });
}

}  // namespace pointsman::route
