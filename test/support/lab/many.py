"""
Many TCP connections of one process, and what becomes of them. Tells what happens by JSON lines.

serve PORT           accepts connections on a port of every address, and keeps them.
connect ADDRESS PORT COUNT   opens so many, tells {"connected"}, and counts the ends of all and the challenges that come: {"ended", "resets",
                     "challenges", "most"}; `most` is how many came within a second at most. The kernel says when.
"""

import json
import resource
import select
import socket
import struct
import sys

SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33
ETH_P_ALL = 3
BACKLOG = 4096
AT_ONCE = 200
SECOND = 1_000_000_000
SYN_ACK = 0x12


def tell(**what):
    print(json.dumps(what), flush=True)


def serve(port):
    poll = select.epoll()
    listening = socket.create_server(('::', port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG)
    poll.register(listening, select.EPOLLIN)
    kept = []
    tell(serving=port)
    while True:
        poll.poll()
        kept.append(listening.accept()[0])


def challenge_listener(address):
    """Of packets of the link layer's payload that this process's namespace receives."""
    family = 0x86DD if ':' in address else 0x0800
    listener = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(family))
    listener.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 26)
    listener.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    listener.setblocking(False)
    return listener


def is_challenge(packet):
    start = 40 if packet[0] >> 4 == 6 else (packet[0] & 0xF) * 4
    return len(packet) > start + 13 and packet[start + 13] == SYN_ACK


def drain(listener, times):
    while True:
        try:
            packet, ancillary, _, _ = listener.recvmsg(128, 64)
        except BlockingIOError:
            return
        if is_challenge(packet):
            seconds, nanoseconds = struct.unpack('qq', ancillary[0][2][:16])
            times.append(seconds * SECOND + nanoseconds)


def open_all(address, port, count):
    """So many at a time as the listener's queue takes."""
    opened = []
    while len(opened) < count:
        some = [socket.create_connection((address, port)) for _ in range(min(AT_ONCE, count - len(opened)))]
        opened.extend(some)
    return opened


def most_within_a_second(times):
    most, first = 0, 0
    for last, at in enumerate(times):
        while times[first] <= at - SECOND:
            first += 1
        most = max(most, last - first + 1)
    return most


def connect(address, port, count):
    opened = open_all(address, port, count)
    listener = challenge_listener(address)
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN)
    waiting = {each.fileno(): each for each in opened}
    for number in waiting:
        poll.register(number, select.EPOLLIN)
    tell(connected=len(opened))
    times, resets, first = [], 0, True
    while waiting:
        for number, _ in poll.poll():
            if number == listener.fileno():
                drain(listener, times)
                continue
            ended = waiting.pop(number)
            poll.unregister(number)
            resets += ended.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 104
            ended.close()
            if first:
                tell(first=True)
                first = False
    drain(listener, times)
    tell(ended=len(opened), resets=resets, challenges=len(times), most=most_within_a_second(sorted(times)))


def main():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    command, *args = sys.argv[1:]
    if command == 'serve':
        serve(int(args[0]))
    else:
        connect(args[0], int(args[1]), int(args[2]))


main()
