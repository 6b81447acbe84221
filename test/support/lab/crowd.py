"""Sends one packet from each of many forged IPv4 addresses to an address and port, from port 4000 on: a UDP datagram, or a TCP SYN.

Arguments: destination, port, first source address, how many, and TCP for SYNs. Run where the packets are to begin.
"""

import ipaddress
import socket
import struct
import sys

SOURCE_PORT = 4000
TIME_TO_LIVE = 32
SYN = 2
WINDOW = 64240


def datagram(_, port):
    # A checksum of 0: there is none.
    return struct.pack('!HHHH', SOURCE_PORT, port, 8, 0)


def syn(addresses, port):
    def segment(checksum):
        return struct.pack('!HHIIBBHHH', SOURCE_PORT, port, 1, 0, 5 << 4, SYN, WINDOW, checksum, 0)

    # Conntrack takes no SYN with a wrong checksum (RFC 9293 section 3.1).
    pseudo = addresses + struct.pack('!BBH', 0, socket.IPPROTO_TCP, 20) + segment(0)
    total = sum(struct.unpack('!16H', pseudo))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return segment(~total & 0xFFFF)


def main():
    destination, port, first, count = sys.argv[1], int(sys.argv[2]), ipaddress.IPv4Address(sys.argv[3]), int(sys.argv[4])
    is_tcp = sys.argv[5:] == ['TCP']
    protocol, payload = (socket.IPPROTO_TCP, syn) if is_tcp else (socket.IPPROTO_UDP, datagram)
    # The kernel fills in the checksum of the IP header, and its length (raw(7)).
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        target = socket.inet_aton(destination)
        for source in range(int(first), int(first) + count):
            addresses = struct.pack('!I', source) + target
            header = struct.pack('!BBHHHBBH', 0x45, 0, 0, 0, 0, TIME_TO_LIVE, protocol, 0) + addresses
            raw.sendto(header + payload(addresses, port), (destination, 0))


main()
