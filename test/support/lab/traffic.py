"""Servers that tell whom they saw, and clients that tell who answered, over TCP, UDP and SCTP."""

import asyncio
import errno
import itertools
import json
import os
import random
import socket
import sys
import time

import sctp

STREAM_KINDS = {'TCP': (socket.SOCK_STREAM, 0), 'UDP': (socket.SOCK_DGRAM, 0), 'SCTP': (socket.SOCK_RAW, 132)}
IP_RECVERR, IPV6_RECVERR = 11, 25
ERRORS = {
    errno.ECONNREFUSED: 'refused',
    errno.ECONNRESET: 'reset',
    errno.EPIPE: 'reset',
    errno.ETIMEDOUT: 'timeout',
    errno.EHOSTUNREACH: 'unreachable',
    errno.ENETUNREACH: 'unreachable',
    # ICMPv6 says that it is prohibited; ICMP makes EHOSTUNREACH of that.
    errno.EACCES: 'unreachable',
    # A host without SCTP says that it does not know the protocol, in ICMP and in ICMPv6.
    errno.ENOPROTOOPT: 'unreachable',
    errno.EPROTO: 'unreachable',
    # What a drop in an output hook looks like to the sender.
    errno.EPERM: 'denied',
}


if hasattr(asyncio, 'timeout'):

    async def within(awaitable, seconds):
        """As asyncio.wait_for of Python 3.12: that of 3.11 makes a task of each call, a fifth of what a request costs."""
        async with asyncio.timeout(seconds):
            return await awaitable

else:
    within = asyncio.wait_for


def open_socket(namespace, protocol, address):
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    kind, number = STREAM_KINDS[protocol]
    with namespace:
        opened = socket.socket(family, kind | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC, number)
    if protocol != 'SCTP':
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return opened


SOURCE_PORTS = itertools.cycle(range(10240, 61000))


def bind_to_new_port(opened, address):
    """
    Binds to a port that no client used lately. The kernel gives one port to connections to different addresses; when
    destination NAT sends both to one endpoint, it has to change one's port, and that would look like masquerading.
    """
    for port in itertools.islice(SOURCE_PORTS, 1000):
        try:
            opened.bind((address, port))
            return
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    raise OSError(errno.EADDRINUSE, 'no free source port')


def text(address, port):
    return f'[{address}]:{port}' if ':' in address else f'{address}:{port}'


class Server:
    """
    Answers every line (TCP), datagram (UDP) or INIT (SCTP) to one address and port with its name, that address, and
    the client as seen.
    """

    def __init__(self, namespace, protocol, address, port, name):
        self.loop = asyncio.get_running_loop()
        self.name, self.address, self.port = name, address, port
        self.connections = set()
        self.socket = open_socket(namespace, protocol, address)
        try:
            self.socket.bind((address, 0 if protocol == 'SCTP' else port))
        except OSError as error:
            self.socket.close()
            where = f'{protocol} server on {text(address, port)} in {namespace.name}'
            raise OSError(error.errno, f'{where}: {error.strerror}') from None
        if protocol == 'TCP':
            self.socket.listen(1024)
        readers = {'TCP': self.accept, 'UDP': self.answer_datagram, 'SCTP': self.answer_init}
        self.loop.add_reader(self.socket.fileno(), readers[protocol])

    def answer(self, client, size):
        answer = {'name': self.name, 'at': text(self.address, self.port), 'seen': text(*client[:2]), 'bytes': size}
        return json.dumps(answer).encode()

    def accept(self):
        try:
            connection, client = self.socket.accept()
        except OSError:
            return
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connections.add(connection)
        # By its number: asyncio writes down what it does not know yet, which for a socket takes two calls of the kernel, a tenth of what a request costs.
        self.loop.add_reader(connection.fileno(), self.answer_lines, connection, client, bytearray())

    def answer_lines(self, connection, client, pending):
        try:
            received = connection.recv(65536)
            pending += received
            while (end := pending.find(b'\n')) >= 0:
                connection.send(self.answer(client, end) + b'\n')
                del pending[: end + 1]
        except OSError:
            received = b''
        if not received:
            self.drop(connection)

    def drop(self, connection):
        self.loop.remove_reader(connection.fileno())
        self.connections.discard(connection)
        connection.close()

    def answer_datagram(self):
        try:
            received, client = self.socket.recvfrom(65536)
            self.socket.sendto(self.answer(client, len(received)), client)
        except OSError:
            return

    def answer_init(self):
        try:
            received, client = self.socket.recvfrom(65536)
            header = (received[0] & 0xF) * 4 if self.socket.family == socket.AF_INET else 0
            parsed = sctp.parse(received[header:])
            if parsed is None or parsed[1] != self.port or parsed[2] != sctp.INIT:
                return
            reply = sctp.init_ack(self.port, parsed[0], parsed[3], self.answer((client[0], parsed[0]), len(received)))
            self.socket.sendto(reply, (client[0], 0))
        except OSError:
            return

    def close(self):
        """Stops listening and ends every connection."""
        for connection in list(self.connections):
            self.drop(connection)
        self.loop.remove_reader(self.socket.fileno())
        self.socket.close()


class Client:
    """One connection, or one UDP or SCTP socket with a fixed source port."""

    def __init__(self, namespace, protocol, address, port, source=None, source_port=0):
        self.loop = asyncio.get_running_loop()
        self.protocol, self.address, self.port = protocol, address, port
        self.socket = open_socket(namespace, protocol, address)
        self.source_port = source_port
        self.buffer = b''
        if protocol == 'TCP':
            level, option = (socket.IPPROTO_IPV6, IPV6_RECVERR) if ':' in address else (socket.IPPROTO_IP, IP_RECVERR)
            self.socket.setsockopt(level, option, 1)
        try:
            own = source or ('::' if ':' in address else '0.0.0.0')
            if protocol == 'SCTP':
                self.source_port = source_port or next(SOURCE_PORTS)
                self.socket.bind((own, 0))
            elif source_port:
                self.socket.bind((own, source_port))
            else:
                bind_to_new_port(self.socket, own)
        except OSError as error:
            self.socket.close()
            raise OSError(error.errno, f'source {source}:{source_port} in {namespace.name}: {error.strerror}') from None

    async def connect(self):
        code = self.socket.connect_ex((self.address, 0 if self.protocol == 'SCTP' else self.port))
        if code == errno.EINPROGRESS:
            writable = self.loop.create_future()
            self.loop.add_writer(self.socket.fileno(), lambda: writable.done() or writable.set_result(None))
            try:
                await writable
            finally:
                self.loop.remove_writer(self.socket.fileno())
            code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) or self.queued_error()
        if code != 0:
            raise OSError(code, os.strerror(code))
        if self.protocol != 'SCTP':
            self.source_port = self.socket.getsockname()[1]

    def queued_error(self):
        """
        The error an ICMP message reported. Between namespaces of one machine it may arrive while the SYN is still being
        sent, when the kernel has the socket locked and keeps the error in its queue only; the caller of connect(2)
        would learn of it a retransmission later.
        """
        if self.protocol != 'TCP':
            return 0
        try:
            _, ancillary, _, _ = self.socket.recvmsg(256, 256, socket.MSG_ERRQUEUE)
        except BlockingIOError:
            return 0
        return int.from_bytes(ancillary[0][2][:4], sys.byteorder) if ancillary else 0

    @property
    def source(self):
        return text(self.socket.getsockname()[0], self.source_port)

    async def exchange(self, size):
        """Sends `size` bytes and returns what the server says."""
        if self.protocol == 'SCTP':
            return await self.exchange_init()
        payload = b'x' * size
        if self.protocol == 'UDP':
            await self.send(payload)
            return json.loads(await self.loop.sock_recv(self.socket, 65536))
        await self.send(payload + b'\n')
        while b'\n' not in self.buffer:
            received = await self.loop.sock_recv(self.socket, 65536)
            if not received:
                raise ConnectionResetError(errno.ECONNRESET, 'closed by the server')
            self.buffer += received
        line, _, self.buffer = self.buffer.partition(b'\n')
        return json.loads(line)

    async def ended(self):
        """Reads until the connection ends."""
        while True:
            received = await self.loop.sock_recv(self.socket, 65536)
            if not received:
                raise ConnectionResetError(errno.ECONNRESET, 'closed by the server')
            self.buffer += received

    async def exchange_init(self):
        tag = random.randrange(1, 2**32)
        await self.send(sctp.init(self.source_port, self.port, tag))
        while True:
            received = await self.loop.sock_recv(self.socket, 65536)
            header = (received[0] & 0xF) * 4 if self.socket.family == socket.AF_INET else 0
            parsed = sctp.parse(received[header:])
            if parsed is not None and parsed[:3] == (self.port, self.source_port, sctp.INIT_ACK):
                return json.loads(parsed[4])

    async def send(self, content):
        try:
            await self.loop.sock_sendall(self.socket, content)
        except PermissionError:
            # A reject in an output hook fails the send as a drop does; its ICMP error follows at once.
            await asyncio.sleep(0.02)
            code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code == 0:
                raise
            raise OSError(code, os.strerror(code)) from None

    def close(self):
        # A reset instead of a handshake: no TIME_WAIT, so that a source port can be used again at once.
        if self.protocol == 'TCP':
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\1\0\0\0\0\0\0\0')
        self.socket.close()


def failure(error, client):
    if isinstance(error, asyncio.TimeoutError):
        kind = 'timeout'
    else:
        kind = ERRORS.get(error.errno)
        if kind is None:
            raise error
    source = None if client is None or client.socket.fileno() < 0 else client.source
    return {'error': kind, 'source': source}


async def exchange(client, size, timeout):
    """One request and its answer over an open client as {name, at, seen, bytes, source} or {error, source}."""
    try:
        answer = await within(client.exchange(size), timeout)
        return {**answer, 'source': client.source}
    except (OSError, asyncio.TimeoutError) as error:
        return failure(error, client)


async def request(make_client, size, timeout):
    """Connects, asks, closes."""
    client = make_client()
    try:
        await within(client.connect(), timeout)
        return await exchange(client, size, timeout)
    except (OSError, asyncio.TimeoutError) as error:
        return failure(error, client)
    finally:
        client.close()


def outcome(answer):
    """
    What repeated requests are counted by: the server, its address, and whether it saw another source than the
    client's; or the error.
    """
    if 'error' in answer:
        return {'error': answer['error']}
    return {'name': answer['name'], 'at': answer['at'], 'masqueraded': answer['seen'] != answer['source']}


class Watch:
    """Workers that ask again and again until stopped, and remember when each server or error was met first and last."""

    def __init__(self, make_client, size, timeout, workers, pause):
        self.outcomes = {}
        self.pause = pause
        self.stopped = False
        self.rounds = [0] * workers
        loop = asyncio.get_running_loop()
        self.tasks = [loop.create_task(self.work(each, make_client, size, timeout)) for each in range(workers)]

    async def work(self, worker, make_client, size, timeout):
        while not self.stopped:
            started = time.time() * 1000
            met = outcome(await request(make_client, size, timeout))
            new = {**met, 'count': 0, 'first': started, 'last': started}
            entry = self.outcomes.setdefault(tuple(met.values()), new)
            entry['count'] += 1
            # By the time requests start: a request is decided when it enters the kernel, not when its answer is read.
            entry['last'] = max(entry['last'], started)
            self.rounds[worker] += 1
            await asyncio.sleep(self.pause)

    async def turn(self):
        """Waits until every worker has ended the request that it has under way, and one that it started after that."""
        wanted = [done + 2 for done in self.rounds]
        while not self.stopped and any(done < least for done, least in zip(self.rounds, wanted)):
            await asyncio.sleep(self.pause)

    async def stop(self):
        # Each worker ends with its request: asyncio.wait_for may swallow a cancellation (Python before 3.12).
        self.stopped = True
        await asyncio.gather(*self.tasks)
        return list(self.outcomes.values())
