#include "probe/space.h"

#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include "netlink/socket.h"
#include "route/message.h"

namespace pointsman::probe {

namespace {

using netlink::ByteView;
using netlink::Done;
using netlink::Message;
using netlink::Result;
using netlink::Socket;
using netlink::Status;

constexpr std::uint32_t kSequence = 1;
constexpr const char* kInside = "eth0";

Status ask(Socket& socket, ByteView request) {
  return socket.request(request, [](const Message&) -> Status { return Done{}; });
}

/// Runs `work` on a thread of its own to its end. std::thread would end the process where no thread can be made.
Status on_thread(const std::function<void()>& work) {
  const auto run = [](void* given) -> void* {
    (*static_cast<std::function<void()>*>(given))();
    return nullptr;
  };
  pthread_t thread{};
  std::function<void()> given = work;
  if (const int error = pthread_create(&thread, nullptr, run, &given); error != 0) return netlink::system_error(error, "a thread");
  pthread_join(thread, nullptr);
  return Done{};
}

/// Every thread of a process may be in another network namespace.
Result<int> make_space() {
  Result<int> made(-1);
  const auto ran = on_thread([&] {
    if (unshare(CLONE_NEWNET) != 0) {
      made = netlink::system_error(errno, "a network namespace of its own");
      return;
    }
    const int descriptor = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    made = descriptor < 0 ? Result<int>(netlink::system_error(errno, "/proc/thread-self/ns/net")) : Result<int>(descriptor);
  });
  if (!ran.ok()) return ran.error();
  return made;
}

/// Takes a link of this namespace into use.
Status bring_up(Socket& socket, const std::string& name, const std::vector<WireAddress>& addresses, bool inside) {
  const std::uint32_t link = if_nametoindex(name.c_str());
  if (link == 0) return netlink::system_error(errno, name);
  if (const auto up = ask(socket, route::encode_link_up(kSequence, link)); !up.ok()) return up.error();
  for (const WireAddress& each : addresses) {
    const auto added = ask(socket, route::encode_new_address(kSequence, link, inside ? each.inside : each.outside, each.prefix));
    if (!added.ok()) return added.error();
    if (!inside) continue;
    const auto routed = ask(socket, route::encode_default_route(kSequence, link, each.outside));
    if (!routed.ok()) return routed.error();
  }
  return Done{};
}

/// A port that leaves the bridge's own hardware address and MTU as they are.
Result<route::BridgePort> port_of(const std::string& bridge) {
  ifreq request{};
  bridge.copy(request.ifr_name, IFNAMSIZ - 1);
  const int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool known = descriptor >= 0 && ioctl(descriptor, SIOCGIFMTU, &request) == 0;
  const int error = errno;
  if (descriptor >= 0) close(descriptor);
  if (!known) return netlink::system_error(error, bridge);
  route::BridgePort port{if_nametoindex(bridge.c_str()), static_cast<std::uint32_t>(request.ifr_mtu), {0xfe, 0xff}};
  if (port.bridge == 0) return netlink::system_error(errno, bridge);
  const auto random = std::span(port.hardware_address).subspan(2);
  if (getrandom(random.data(), random.size(), 0) < 0) return netlink::system_error(errno, "random bytes");
  return port;
}

Status furnish(int space, const std::string& link, const std::vector<WireAddress>& addresses, const std::optional<std::string>& bridge) {
  std::optional<route::BridgePort> port;
  if (bridge) {
    const auto found = port_of(*bridge);
    if (!found.ok()) return found.error();
    port = found.value();
  }
  auto here = Socket::open(NETLINK_ROUTE);
  if (!here.ok()) return here.error();
  if (const auto made = ask(here.value(), route::encode_new_veth(kSequence, link, kInside, space, port)); !made.ok()) return made.error();
  if (const auto up = bring_up(here.value(), link, bridge ? std::vector<WireAddress>{} : addresses, false); !up.ok()) return up.error();
  return run_inside(space, [&]() -> Status {
    auto there = Socket::open(NETLINK_ROUTE);
    if (!there.ok()) return there.error();
    if (const auto up = bring_up(there.value(), "lo", {}, true); !up.ok()) return up.error();
    return bring_up(there.value(), kInside, addresses, true);
  });
}

}  // namespace

Status run_inside(int space, const std::function<Status()>& work) {
  if (space < 0) return work();
  Status done(Done{});
  const auto ran = on_thread([&] {
    done = setns(space, CLONE_NEWNET) == 0 ? work() : Status(netlink::system_error(errno, "enter a network namespace"));
  });
  return ran.ok() ? done : ran;
}

Result<int> open_space(const std::string& link, const std::vector<WireAddress>& addresses, const std::optional<std::string>& bridge) {
  auto space = make_space();
  if (!space.ok()) return space.error();
  if (const auto furnished = furnish(space.value(), link, addresses, bridge); !furnished.ok()) {
    // With it goes the wire, both ends of it.
    close(space.value());
    return furnished.error();
  }
  return space.value();
}

Status lease_address(const std::string& link, ByteView address, std::uint8_t prefix, std::uint32_t seconds) {
  const std::uint32_t index = if_nametoindex(link.c_str());
  if (index == 0) return netlink::system_error(errno, link);
  auto here = Socket::open(NETLINK_ROUTE);
  if (!here.ok()) return here.error();
  return ask(here.value(), route::encode_leased_address(kSequence, index, address, prefix, seconds));
}

}  // namespace pointsman::probe
