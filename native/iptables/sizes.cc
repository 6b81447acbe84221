#include "iptables/sizes.h"

#include <linux/netfilter_ipv4/ip_tables.h>
#include <linux/netfilter_ipv6/ip6_tables.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <sstream>

#include "base/descriptor.h"
#include "iptables/file.h"
#include "iptables/programs.h"

namespace pointsman::iptables {

namespace {

static_assert(sizeof(ipt_getinfo) == sizeof(ip6t_getinfo) && offsetof(ipt_getinfo, size) == offsetof(ip6t_getinfo, size));

template <std::size_t Count>
void print_offsets(std::ostream& text, const unsigned int (&offsets)[Count]) {
  for (const unsigned int offset : offsets) text << ' ' << offset;
}

}  // namespace

netlink::Result<std::string, int> table_sizes(Family family) {
  const bool is_ipv4 = family == Family::kIPv4;
  // Asking for a table would create it.
  const auto content = read_file(table_names_file(family));
  if (!content.ok()) return content.error();
  const Descriptor socket(::socket(is_ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.open()) return errno;
  std::istringstream names(content.value());
  std::ostringstream text;
  for (std::string name; std::getline(names, name);) {
    ipt_getinfo info{};
    if (name.size() >= sizeof info.name) continue;
    std::memcpy(info.name, name.data(), name.size());
    socklen_t length = sizeof info;
    if (getsockopt(socket.number(), is_ipv4 ? SOL_IP : SOL_IPV6, is_ipv4 ? IPT_SO_GET_INFO : IP6T_SO_GET_INFO, &info, &length) != 0) return errno;
    text << name << ' ' << info.num_entries << ' ' << info.size;
    print_offsets(text, info.hook_entry);
    print_offsets(text, info.underflow);
    text << '\n';
  }
  return text.str();
}

}  // namespace pointsman::iptables
