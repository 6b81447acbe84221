"""Sends one UDP datagram from each of many forged IPv4 addresses to an address and port, from port 4000 on.

Arguments: destination, port, first source address, how many. Run where the packets are to begin.
"""

import ipaddress
import socket
import struct
import sys

SOURCE_PORT = 4000
TIME_TO_LIVE = 32


def main():
    destination, port, first, count = sys.argv[1], int(sys.argv[2]), ipaddress.IPv4Address(sys.argv[3]), int(sys.argv[4])
    # A checksum of 0: there is none. The kernel fills in that of the IP header, and its length (raw(7)).
    datagram = struct.pack('!HHHH', SOURCE_PORT, port, 8, 0)
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        target = socket.inet_aton(destination)
        for source in range(int(first), int(first) + count):
            addresses = struct.pack('!I', source) + target
            header = struct.pack('!BBHHHBBH', 0x45, 0, 0, 0, 0, TIME_TO_LIVE, socket.IPPROTO_UDP, 0) + addresses
            raw.sendto(header + datagram, (destination, 0))


main()
