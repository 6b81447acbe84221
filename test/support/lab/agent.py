"""
The packet laboratory: all namespaces, servers and clients of one laboratory in one process, driven by JSON lines.

Each line on standard input is {"id", "op", ...}; each line on standard output {"id", "result"} or {"id", "error"}. The
process, and with it every namespace, ends when its standard input or its parent does.
"""

import asyncio
import ipaddress
import json
import os
import socket
import sys
import time

from namespaces import Network, isolate
from traffic import Client, Server, Watch, exchange, failure, outcome, request

# linux/ipv6_route.h
RTF_LOCAL = 0x80000000


def is_local(address):
    """
    Whether the thread's namespace has the address's local route. What a socket would have as its source does not tell: an address is chosen
    for itself even while its packets leave by another route.
    """
    with open('/proc/thread-self/net/ipv6_route', encoding='ascii') as routes:
        for line in routes:
            destination, length, *rest = line.split()
            if destination == address.packed.hex() and length == '80' and int(rest[-2], 16) & RTF_LOCAL:
                return True
    return False


class Agent:
    def __init__(self):
        self.network = Network()
        self.handles = {}
        self.next_handle = 1

    def keep(self, kept):
        handle, self.next_handle = self.next_handle, self.next_handle + 1
        self.handles[handle] = kept
        return handle

    def client_maker(self, op):
        namespace = self.network[op['from']]
        target = op['protocol'], op['address'], op['port']
        return lambda: Client(namespace, *target, op.get('source'), op.get('sourcePort', 0))

    async def build(self, op):
        self.network.build(op['network'], op['adopted'])
        descriptors = {name: namespace.fd for name, namespace in self.network.namespaces.items()}
        return {'pid': os.getpid(), 'namespaces': descriptors}

    async def reset(self, op):
        """Ends everything: what is built next is as in a new process, which takes seconds to start where machines are emulated."""
        handles, self.handles = self.handles, {}
        for kept in handles.values():
            if isinstance(kept, Watch):
                await kept.stop()
            else:
                kept.close()
        self.network.close()
        self.network = Network()

    async def address(self, op):
        with self.network[op['in']] as namespace:
            namespace.netlink.change_address(op['add'], op['link'], op['address'])
        if op['add'] and ':' in op['address']:
            await self.until_local(self.network[op['in']], ipaddress.ip_interface(op['address']).ip)

    async def until_local(self, namespace, address):
        """Waits for the address's route: the kernel adds it later, in a work queue, even without duplicate address detection."""
        for _ in range(1000):
            with namespace:
                if is_local(address):
                    return
            await asyncio.sleep(0.005)
        raise OSError(f'{address} has no route to itself')

    async def route(self, op):
        with self.network[op['in']] as namespace:
            namespace.netlink.change_route(op['add'], op['to'], op.get('via'), op.get('link'), op.get('source'))

    async def link(self, op):
        with self.network[op['in']] as namespace:
            if op['state'] == 'deleted':
                namespace.netlink.delete_link(op['link'])
            else:
                namespace.netlink.set_link(op['link'], up=op['state'] == 'up')

    async def sysctl(self, op):
        with self.network[op['in']] as namespace:
            if 'value' in op:
                namespace.set_sysctls({op['key']: op['value']})
            with open(f"/proc/sys/{op['key']}", encoding='ascii') as file:
                return file.read().strip()

    async def serve(self, op):
        return self.keep(Server(self.network[op['in']], op['protocol'], op['address'], op['port'], op['name']))

    async def request(self, op):
        return await request(self.client_maker(op), op['bytes'], op['timeout'])

    async def burst(self, op):
        """Many requests, some at a time, counted by outcome."""
        make_client, remaining, outcomes = self.client_maker(op), op['count'], {}

        async def work():
            nonlocal remaining
            while remaining > 0:
                remaining -= 1
                met = outcome(await request(make_client, op['bytes'], op['timeout']))
                outcomes.setdefault(tuple(met.values()), {**met, 'count': 0})['count'] += 1

        await asyncio.gather(*(work() for _ in range(op['workers'])))
        return list(outcomes.values())

    async def open(self, op):
        client = self.client_maker(op)()
        try:
            await asyncio.wait_for(client.connect(), op['timeout'])
        except BaseException:
            client.close()
            raise
        return self.keep(client)

    async def exchange(self, op):
        return await exchange(self.handles[op['handle']], op['bytes'], op['timeout'])

    async def fate(self, op):
        """Waits for the end of an idle connection: {error, at} in milliseconds since the epoch; error null while it is open."""
        client = self.handles[op['handle']]
        try:
            await asyncio.wait_for(client.ended(), op['timeout'])
        except (OSError, asyncio.TimeoutError) as error:
            kind = failure(error, client)['error']
            return {'error': None if kind == 'timeout' and isinstance(error, asyncio.TimeoutError) else kind, 'at': time.time() * 1000}

    async def repeats(self, op):
        """How many segments the client's kernel sent again, the first one's repetitions with them (tcpi_total_retrans of TCP_INFO)."""
        info = self.handles[op['handle']].socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        return int.from_bytes(info[100:104], sys.byteorder)

    async def send(self, op):
        """Sends a request and waits for nothing: a client that is busy."""
        await self.handles[op['handle']].send(b'x' * op['bytes'] + b'\n')

    async def watch(self, op):
        return self.keep(Watch(self.client_maker(op), op['bytes'], op['timeout'], op['workers'], op['pause']))

    async def turn(self, op):
        await self.handles[op['handle']].turn()

    async def unwatch(self, op):
        return await self.handles.pop(op['handle']).stop()

    async def close(self, op):
        self.handles.pop(op['handle']).close()

    async def http(self, op):
        """A GET over HTTP/1.0; {status, headers, body}, or {error} when there is no answer."""
        client = Client(self.network[op['from']], 'TCP', op['address'], op['port'])
        host = f"[{op['address']}]" if ':' in op['address'] else op['address']
        head = f"GET {op['path']} HTTP/1.0\r\nHost: {host}:{op['port']}\r\nConnection: close\r\n\r\n"
        try:
            content = await asyncio.wait_for(converse(client, head.encode()), op['timeout'])
        except (OSError, asyncio.TimeoutError) as error:
            return {'error': str(error) or 'timeout'}
        finally:
            client.close()
        header, _, body = content.partition(b'\r\n\r\n')
        status, *lines = header.decode('latin-1').split('\r\n')
        if not status.startswith('HTTP/'):
            return {'error': f'not HTTP: {status!r}'}
        pairs = (line.partition(':') for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        return {'status': int(status.split()[1]), 'headers': headers, 'body': body.decode()}


async def converse(client, content):
    await client.connect()
    await client.send(content)
    received = b''
    while chunk := await client.loop.sock_recv(client.socket, 65536):
        received += chunk
    return received


async def answer(agent, op):
    handler = getattr(agent, op['op'], None)
    try:
        if handler is None or op['op'] in ('keep', 'client_maker'):
            raise ValueError(f"no operation {op['op']!r}")
        reply = {'id': op['id'], 'result': await handler(op)}
    except (OSError, LookupError, ValueError, TypeError, asyncio.TimeoutError) as error:
        message = getattr(error, 'strerror', None) or str(error) or type(error).__name__
        reply = {'id': op['id'], 'error': message}
    sys.stdout.write(json.dumps(reply) + '\n')
    sys.stdout.flush()


async def main():
    isolate()
    agent = Agent()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**24)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    # Operations start in the order they come in; those that wait for packets run side by side.
    running = set()
    while line := await reader.readline():
        task = loop.create_task(answer(agent, json.loads(line)))
        running.add(task)
        task.add_done_callback(running.discard)


if __name__ == '__main__':
    try:
        asyncio.run(main())
    except OSError as error:
        sys.exit(f'the packet laboratory cannot start: {error.strerror or error}')
