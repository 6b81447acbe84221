"""Prints the timeout policies of conntrack in this network namespace, one a line: name, family, protocol, seconds of each state."""

import socket
import struct

NFNETLINK = 12
SUBSYSTEM = 8
GET = 1
NAME, FAMILY, PROTOCOL, DATA = 1, 2, 3, 4


def attributes(data):
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        yield kind & 0x3FFF, data[4:length]
        data = data[(length + 3) & ~3 :]


def policies():
    request = struct.pack("=IHHII", 20, SUBSYSTEM << 8 | GET, 0x301, 1, 0) + bytes(4)
    asked = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NFNETLINK)
    asked.send(request)
    while True:
        answer = asked.recv(1 << 20)
        while len(answer) >= 16:
            length, kind, _, _, _ = struct.unpack_from("=IHHII", answer)
            if kind == 3:
                return
            if kind == 2:
                raise OSError(-struct.unpack_from("=i", answer, 16)[0], "policies cannot be listed")
            yield dict(attributes(answer[20:length]))
            answer = answer[(length + 3) & ~3 :]


for found in policies():
    seconds = dict(attributes(found[DATA]))
    print(
        found[NAME].rstrip(b"\0").decode(),
        {2: "IPv4", 10: "IPv6"}[struct.unpack(">H", found[FAMILY])[0]],
        {6: "tcp", 17: "udp"}[found[PROTOCOL][0]],
        *(struct.unpack(">I", seconds[state])[0] for state in sorted(seconds)),
    )
