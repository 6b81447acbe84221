"""Network namespaces that live as long as this process, and the links, addresses and routes in them."""

import contextlib
import ctypes
import errno
import os
import signal
import socket
import subprocess

from rtnetlink import Rtnetlink

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4

# Sysctls of every namespace. The reject rules under test must not be hidden by the kernel's limits on ICMP errors,
# nor packets by the
# host's reverse path filter, which new namespaces inherit. Not every kernel lets a namespace set each of them.
COMMON_SYSCTLS = {
    'net/ipv4/conf/all/rp_filter': 0,
    'net/ipv4/conf/default/rp_filter': 0,
    'net/ipv4/conf/all/accept_redirects': 0,
    'net/ipv4/conf/default/accept_redirects': 0,
    'net/ipv4/icmp_ratelimit': 0,
    'net/ipv4/icmp_msgs_per_sec': 1000000,
    'net/ipv6/icmp/ratelimit': 0,
    'net/ipv6/conf/all/accept_ra': 0,
    'net/ipv6/conf/default/accept_ra': 0,
    'net/ipv6/conf/all/accept_redirects': 0,
    'net/ipv6/conf/default/accept_redirects': 0,
    # Link-local addresses, which neighbour discovery needs, are usable at once instead of after a second.
    'net/ipv6/conf/all/accept_dad': 0,
    'net/ipv6/conf/default/accept_dad': 0,
}
ROUTER_SYSCTLS = {
    'net/ipv4/ip_forward': 1,
    'net/ipv4/conf/all/send_redirects': 0,
    'net/ipv4/conf/default/send_redirects': 0,
    'net/ipv6/conf/all/forwarding': 1,
}

libc = ctypes.CDLL(None, use_errno=True)


def call(name, *arguments):
    if getattr(libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f'{name}: {os.strerror(code)}')


def isolate():
    """
    Moves this process into a network namespace of its own, in a user namespace where the caller may not make one
    otherwise, and binds its life to its parent's.
    """
    try:
        call('unshare', CLONE_NEWNET)
    except OSError as error:
        if error.errno != errno.EPERM:
            raise
        enter_user_namespace()
    # Changed credentials clear both: the first lets the parent look into /proc/<pid>/ns, the second ends us with
    # the parent.
    call('prctl', PR_SET_DUMPABLE, 1, 0, 0, 0)
    call('prctl', PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def enter_user_namespace():
    user, group = os.geteuid(), os.getegid()
    try:
        call('unshare', CLONE_NEWUSER | CLONE_NEWNET)
    except OSError as error:
        raise OSError(
            error.errno,
            f'{error.strerror}; this system lets ordinary users make no user namespaces (see sysctl '
            'kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, '
            'user.max_user_namespaces): run as root',
        ) from None
    for name, content in (('setgroups', 'deny'), ('uid_map', f'0 {user} 1'), ('gid_map', f'0 {group} 1')):
        with open(f'/proc/self/{name}', 'w', encoding='ascii') as file:
            file.write(content)


# What a laboratory before this one may have left. Not every machine has all of it.
EMPTYING = r'''
for family in '' 6; do printf '*%s\nCOMMIT\n' filter nat mangle | ip${family}tables-legacy-restore; done
nft flush ruleset; ipvsadm -C; ipset destroy; conntrack -F
printf '%s dev lo\n' 'address flush' 'address add 127.0.0.1/8' 'address add ::1/128' 'link set up' | ip -force -batch -
'''


def empty(netlink):
    """The thread must be in the namespace."""
    delete_links(netlink)
    subprocess.run(['sh', '-c', EMPTYING], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def delete_links(netlink):
    for _, name in socket.if_nameindex():
        # With one end of a pair goes the other; what the kernel made by itself stays.
        with contextlib.suppress(OSError):
            netlink.delete_link(name)


class Namespace:
    """A network namespace; in a `with` block, the calling thread is in it."""

    def __init__(self, name, parent=None, adopted=None):
        self.name = name
        self.parent = parent
        if parent is not None and adopted is None:
            call('unshare', CLONE_NEWNET)
        self.fd = os.open(f"/proc/{adopted or 'self'}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        if adopted is not None:
            call('setns', self.fd, CLONE_NEWNET)
        self.netlink = Rtnetlink()
        if adopted is not None:
            empty(self.netlink)
        self.set_sysctls(COMMON_SYSCTLS, optional=True)
        self.netlink.set_link('lo', up=True)
        if parent is not None:
            self.__exit__()

    def __enter__(self):
        call('setns', self.fd, CLONE_NEWNET)
        return self

    def __exit__(self, *_):
        call('setns', (self.parent or self).fd, CLONE_NEWNET)

    def close(self):
        """The namespace goes, unless a process is in it."""
        self.netlink.socket.close()
        os.close(self.fd)

    def set_sysctls(self, values, optional=False):
        """Writes /proc/sys/<key>; the thread must be in the namespace."""
        for key, value in values.items():
            try:
                with open(f'/proc/sys/{key}', 'w', encoding='ascii') as file:
                    file.write(str(value))
            except OSError as error:
                if not optional:
                    raise OSError(error.errno, f'sysctl {key}={value} in {self.name}: {error.strerror}') from None


class Network:
    """
    The namespaces of one laboratory. A hub that no test sees holds the switches between them.

    Described as {name: {router, interfaces: {name: {peer: "namespace/interface" | "switch/<name>", bridge, master,
    addresses}}, routes: [{to, via, link, source}], blackholes: [{to, from}], sysctls}}.
    """

    def __init__(self):
        self.hub = Namespace('hub')
        self.namespaces = {}
        self.switches = set()
        self.ports = 0

    def __getitem__(self, name):
        if name not in self.namespaces:
            raise KeyError(f'no namespace {name!r}; there are {", ".join(self.namespaces)}')
        return self.namespaces[name]

    def close(self):
        for namespace in self.namespaces.values():
            namespace.close()
        delete_links(self.hub.netlink)
        self.hub.close()

    def build(self, description, adopted):
        for name, described in description.items():
            namespace = self.namespaces[name] = Namespace(name, self.hub, adopted.get(name))
            with namespace:
                namespace.set_sysctls(ROUTER_SYSCTLS if described.get('router') else {})
                for interface, settings in described.get('interfaces', {}).items():
                    if settings.get('bridge'):
                        namespace.netlink.add_bridge(interface)
        for name, described in description.items():
            for interface, settings in described.get('interfaces', {}).items():
                if 'peer' in settings:
                    self.connect(name, interface, settings['peer'])
        for name, described in description.items():
            with self.namespaces[name] as namespace:
                configure(namespace, described)

    def connect(self, name, interface, peer):
        other, other_interface = peer.split('/')
        if other != 'switch':
            self.hub.netlink.add_veth(interface, self[name].fd, other_interface, self[other].fd)
            return
        if other_interface not in self.switches:
            self.switches.add(other_interface)
            self.hub.netlink.add_bridge(other_interface)
            self.hub.netlink.set_link(other_interface, up=True)
        self.ports += 1
        port = f'port{self.ports}'
        self.hub.netlink.add_veth(interface, self[name].fd, port, self.hub.fd)
        self.hub.netlink.set_link(port, up=True, master=other_interface)


def configure(namespace, described):
    """Addresses, routes and the rest, once all links are there; the thread must be in the namespace."""
    netlink = namespace.netlink
    for interface, settings in described.get('interfaces', {}).items():
        netlink.set_link(interface, up=True, master=settings.get('master'))
    for interface, settings in described.get('interfaces', {}).items():
        for address in settings.get('addresses', []):
            netlink.change_address(True, interface, address)
    for route in described.get('routes', []):
        netlink.change_route(True, **route)
    for blackhole in described.get('blackholes', []):
        netlink.add_blackhole_rule(blackhole['to'], blackhole['from'])
    namespace.set_sysctls(described.get('sysctls', {}))
