"""
Leads TCP connections to chosen states by segments of its own, which no TCP of the kernel sends.

    states.py endpoint ADDRESS PORT SCRIPTS    answers, and prints "ready" before
    states.py client ADDRESS TARGET PORT SCRIPTS

SCRIPTS is JSON: by client port, the segments that client and endpoint send in turn: "S", "SA", "A", "FA", "R", "D" (data), each with "<" before it
where the endpoint sends it. The client ends when all have been sent and received.
"""

import json
import socket
import struct
import sys

FLAGS = {"S": 0x02, "SA": 0x12, "A": 0x10, "FA": 0x11, "R": 0x04, "D": 0x18}
SYN, FIN = 0x02, 0x01
# The kernel's own resets have a window of 0, by which a rule of the laboratory drops them.
WINDOW = 1000
TIMEOUT_S = 30


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Wire:
    def __init__(self, address):
        self.family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.address = address
        self.socket = socket.socket(self.family, socket.SOCK_RAW, socket.IPPROTO_TCP)
        self.socket.bind((address, 0))
        self.socket.settimeout(TIMEOUT_S)

    def send(self, peer, source, port, seq, ack, kind):
        data = b"x" * 10 if kind == "D" else b""

        def segment(sum_):
            return struct.pack(">HHIIBBHHH", source, port, seq, ack, 5 << 4, FLAGS[kind], WINDOW, sum_, 0) + data

        ends = socket.inet_pton(self.family, self.address) + socket.inet_pton(self.family, peer)
        pseudo = ends + struct.pack(">II", len(segment(0)), socket.IPPROTO_TCP)
        self.socket.sendto(segment(checksum(pseudo + segment(0))), (peer, 0))
        return len(data) + (1 if FLAGS[kind] & (SYN | FIN) else 0)

    def receive(self):
        """Source port, own port, peer, and the sequence number that acknowledges the segment."""
        while True:
            packet, (peer, *_) = self.socket.recvfrom(65535)
            header = (packet[0] & 15) * 4 if self.family == socket.AF_INET else 0
            segment = packet[header:]
            source, port, seq, _, offset, flags, window = struct.unpack(">HHIIBBH", segment[:16])
            # What the kernel sent by itself.
            if window == WINDOW:
                length = len(segment) - (offset >> 4) * 4 + (1 if flags & (SYN | FIN) else 0)
                return source, port, peer, (seq + length) & 0xFFFFFFFF


def client(address, target, port, scripts):
    wire = Wire(address)
    for own, script in scripts.items():
        seq, ack = 1000, 0
        for step in script:
            if step.startswith("<"):
                while True:
                    source, to, _, after = wire.receive()
                    if (source, to) == (port, int(own)):
                        break
                ack = after
            else:
                acknowledges = 0 if step == "S" else ack
                seq += wire.send(target, int(own), port, seq, acknowledges, step)
                # A segment that is sent again has the same number.
                if step == "D":
                    seq -= 10
    print("done", flush=True)


def endpoint(address, port, scripts):
    wire = Wire(address)
    print("ready", flush=True)
    places, numbers = {}, {}
    while True:
        source, to, peer, ack = wire.receive()
        if to != port or str(source) not in scripts:
            continue
        script = scripts[str(source)]
        place = places.get(source, 0) + 1
        while place < len(script) and script[place].startswith("<"):
            kind = script[place][1:]
            seq = numbers.get(source, 5000)
            numbers[source] = seq + wire.send(peer, port, source, seq, 0 if kind == "S" else ack, kind)
            place += 1
        places[source] = place


role, *rest = sys.argv[1:]
if role == "client":
    client(rest[0], rest[1], int(rest[2]), json.loads(rest[3]))
else:
    try:
        endpoint(rest[0], int(rest[1]), json.loads(rest[2]))
    except TimeoutError:
        pass
