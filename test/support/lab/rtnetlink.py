"""
The few rtnetlink(7) requests a packet laboratory needs. Python's standard library only, so that no `ip` program has
to be installed.
"""

import ipaddress
import itertools
import os
import socket
import struct

RTM_NEWLINK, RTM_DELLINK = 16, 17
RTM_NEWADDR, RTM_DELADDR = 20, 21
RTM_NEWROUTE, RTM_DELROUTE = 24, 25
RTM_NEWRULE = 32
NLMSG_ERROR = 2
NLM_F_REQUEST, NLM_F_ACK, NLM_F_EXCL, NLM_F_CREATE = 0x1, 0x4, 0x200, 0x400

IFLA_IFNAME, IFLA_MASTER, IFLA_LINKINFO, IFLA_NET_NS_FD = 3, 10, 18, 28
IFLA_INFO_KIND, IFLA_INFO_DATA = 1, 2
VETH_INFO_PEER = 1
IFLA_BR_MCAST_SNOOPING = 23
IFF_UP = 1
IFA_ADDRESS, IFA_LOCAL = 1, 2
IFA_F_NODAD = 0x02
RTA_DST, RTA_OIF, RTA_GATEWAY, RTA_PREFSRC = 1, 4, 5, 7
RT_TABLE_MAIN, RTPROT_STATIC, RTN_UNICAST = 254, 4, 1
RT_SCOPE_UNIVERSE, RT_SCOPE_LINK = 0, 253
RTNH_F_ONLINK = 4
FRA_DST, FRA_IIFNAME, FRA_PRIORITY, FR_ACT_BLACKHOLE = 1, 3, 6, 6


def attribute(kind, value):
    if isinstance(value, str):
        value = value.encode() + b'\0'
    elif isinstance(value, int):
        value = struct.pack('=I', value)
    return struct.pack('=HH', len(value) + 4, kind) + value + b'\0' * (-len(value) % 4)


def family_of(address):
    return socket.AF_INET6 if ':' in address else socket.AF_INET


class Rtnetlink:
    """
    One socket in the network namespace the thread is in when this is made; link names are looked up in the thread's
    namespace at the call.
    """

    indexes = itertools.count(100)

    def __init__(self):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self.socket.bind((0, 0))
        self.sequence = 0

    def send(self, what, kind, flags, body):
        """Sends one request and waits for its acknowledgement; `what` names it in the error."""
        self.sequence += 1
        header = struct.pack('=IHHII', 16 + len(body), kind, flags | NLM_F_REQUEST | NLM_F_ACK, self.sequence, 0)
        self.socket.send(header + body)
        reply = self.socket.recv(65536)
        _, reply_kind, _, sequence, _, error = struct.unpack_from('=IHHIIi', reply)
        if reply_kind != NLMSG_ERROR or sequence != self.sequence:
            raise OSError(0, f'{what}: unexpected netlink answer of type {reply_kind}')
        if error != 0:
            raise OSError(-error, f'{what}: {os.strerror(-error)}')

    def add_bridge(self, name):
        details = attribute(IFLA_BR_MCAST_SNOOPING, b'\0')
        link = attribute(IFLA_INFO_KIND, 'bridge') + attribute(IFLA_INFO_DATA, details)
        body = link_header() + attribute(IFLA_IFNAME, name) + attribute(IFLA_LINKINFO, link)
        self.send(f'bridge {name}', RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, body)

    def add_veth(self, name, namespace, peer, peer_namespace):
        """A veth pair with each end created in its namespace (file descriptors)."""
        # The kernel takes its time (up to a second) to report a veth's carrier when both ends have the same
        # index in their namespaces.
        index = next(self.indexes)
        other = link_header(next(self.indexes)) + attribute(IFLA_IFNAME, peer)
        other += attribute(IFLA_NET_NS_FD, peer_namespace)
        details = attribute(VETH_INFO_PEER, other)
        link = attribute(IFLA_INFO_KIND, 'veth') + attribute(IFLA_INFO_DATA, details)
        body = link_header(index) + attribute(IFLA_IFNAME, name) + attribute(IFLA_NET_NS_FD, namespace)
        body += attribute(IFLA_LINKINFO, link)
        self.send(f'veth pair {name}, {peer}', RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, body)

    def set_link(self, name, up, master=None):
        extra = b'' if master is None else attribute(IFLA_MASTER, socket.if_nametoindex(master))
        body = link_header(socket.if_nametoindex(name), IFF_UP if up else 0, IFF_UP) + extra
        self.send(f'link {name}', RTM_NEWLINK, 0, body)

    def delete_link(self, name):
        self.send(f'link {name}', RTM_DELLINK, 0, link_header(socket.if_nametoindex(name)))

    def change_address(self, add, link, prefix):
        """Adds or removes `address/length`; IPv6 addresses are usable at once (no duplicate address detection)."""
        interface = ipaddress.ip_interface(prefix)
        family = family_of(prefix)
        flags = IFA_F_NODAD if family == socket.AF_INET6 else 0
        index = socket.if_nametoindex(link)
        header = struct.pack('=BBBBI', family, interface.network.prefixlen, flags, RT_SCOPE_UNIVERSE, index)
        body = header + attribute(IFA_LOCAL, interface.ip.packed) + attribute(IFA_ADDRESS, interface.ip.packed)
        kind, flags = (RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL) if add else (RTM_DELADDR, 0)
        self.send(f'address {prefix} on {link}', kind, flags, body)

    def change_route(self, add, to, via=None, link=None, source=None):
        """
        Adds or removes a route to a prefix through a gateway, a link, or a gateway that is reached on the link
        whatever its address.
        """
        network = ipaddress.ip_network(to)
        scope = RT_SCOPE_LINK if via is None and network.version == 4 else RT_SCOPE_UNIVERSE
        nexthop_flags = RTNH_F_ONLINK if via is not None and link is not None else 0
        body = route_header(network, RT_TABLE_MAIN, RTPROT_STATIC, scope, RTN_UNICAST, nexthop_flags)
        body += attribute(RTA_DST, network.network_address.packed)
        if via is not None:
            body += attribute(RTA_GATEWAY, ipaddress.ip_address(via).packed)
        if link is not None:
            body += attribute(RTA_OIF, socket.if_nametoindex(link))
        if source is not None:
            body += attribute(RTA_PREFSRC, ipaddress.ip_address(source).packed)
        kind, flags = (RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL) if add else (RTM_DELROUTE, 0)
        self.send(f'route to {to}', kind, flags, body)

    def add_blackhole_rule(self, to, arriving_on):
        """
        Drops what arrives on a link for a prefix: a router that does not send back what came from the side the prefix
        belongs to.
        """
        network = ipaddress.ip_network(to)
        # struct fib_rule_hdr has rtmsg's layout, with the action in the type's place.
        body = route_header(network, 0, 0, 0, FR_ACT_BLACKHOLE, 0)
        body += attribute(FRA_DST, network.network_address.packed) + attribute(FRA_IIFNAME, arriving_on)
        body += attribute(FRA_PRIORITY, 100)
        self.send(f'rule for {to} from {arriving_on}', RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, body)


def link_header(index=0, flags=0, change=0):
    return struct.pack('=BBHiII', socket.AF_UNSPEC, 0, 0, index, flags, change)


def route_header(network, table, protocol, scope, kind, flags):
    family = socket.AF_INET6 if network.version == 6 else socket.AF_INET
    return struct.pack('=BBBBBBBBI', family, network.prefixlen, 0, 0, table, protocol, scope, kind, flags)
