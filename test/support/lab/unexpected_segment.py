"""Sends one segment far outside of the window of a connection to the port given, and says whether the client resets the connection for it.

Run where the server is. Takes the next data that comes in for address and port; prints `reset` or `quiet`.
"""

import socket
import struct
import sys
import time

ETH_P_IP = 0x0800
PUSH_ACK, RESET = 0x18, 0x04
#: How far from what is expected: more than any window.
FAR = 1 << 30
WAIT_SECONDS = 1.0


def checksum(data):
    data += b'\0' * (len(data) % 2)
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def segments(packets, address, port):
    """Source, source port, sequence, acknowledgement, flags and length of TCP segments that come in for address and port."""
    while True:
        packet = packets.recv(65535)
        header = (packet[0] & 0x0F) * 4
        if packet[9] != socket.IPPROTO_TCP or packet[16:20] != socket.inet_aton(address):
            continue
        source, target, sequence, acknowledged, offset, flags = struct.unpack('!HHIIBB', packet[header : header + 14])
        if target == port:
            length = struct.unpack('!H', packet[2:4])[0] - header - (offset >> 4) * 4
            yield packet[12:16], source, sequence, acknowledged, flags, length


def main():
    address, port = sys.argv[1], int(sys.argv[2])
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP))
    print('ready', flush=True)
    incoming = segments(packets, address, port)
    client, client_port, sequence, acknowledged, _, length = next(each for each in incoming if each[5] > 0)
    own = socket.inet_aton(address)
    fields = [port, client_port, (acknowledged + FAR) % 2**32, (sequence + length) % 2**32, 5 << 4, PUSH_ACK, 512]
    payload = b'boom'
    pseudo = own + client + struct.pack('!BBH', 0, socket.IPPROTO_TCP, 20 + len(payload))
    unsummed = struct.pack('!HHIIBBHHH', *fields, 0, 0) + payload
    segment = struct.pack('!HHIIBBHHH', *fields, checksum(pseudo + unsummed), 0) + payload
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
    raw.bind((address, 0))
    raw.sendto(segment, (socket.inet_ntoa(client), 0))
    packets.settimeout(WAIT_SECONDS)
    deadline = time.monotonic() + WAIT_SECONDS
    try:
        for each in incoming:
            if each[4] & RESET:
                print('reset', flush=True)
                return
            if time.monotonic() > deadline:
                break
    except TimeoutError:
        pass
    print('quiet', flush=True)


main()
