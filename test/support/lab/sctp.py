"""
SCTP's first two chunks (RFC 9260, INIT and INIT ACK), enough to learn who answers and whom it sees: kernels without
CONFIG_IP_SCTP have no SCTP sockets, but their connection tracking and NAT know the protocol. The answer travels in the
INIT ACK's state cookie.
"""

import struct

INIT, INIT_ACK = 1, 2
STATE_COOKIE = 7


def crc32c_table():
    table = []
    for index in range(256):
        value = index
        for _ in range(8):
            value = (value >> 1) ^ 0x82F63B78 if value & 1 else value >> 1
        table.append(value)
    return table


CRC32C = crc32c_table()


def crc32c(content):
    value = 0xFFFFFFFF
    for byte in content:
        value = CRC32C[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


def packet(source_port, destination_port, verification_tag, chunk):
    head = struct.pack('!HHI', source_port, destination_port, verification_tag)
    # The checksum is the one field in little-endian order (RFC 9260, appendix A).
    return head + struct.pack('<I', crc32c(head + b'\0\0\0\0' + chunk)) + chunk


def init_chunk(kind, tag, parameters=b''):
    body = struct.pack('!IIHHI', tag, 65536, 1, 1, tag) + parameters
    return struct.pack('!BBH', kind, 0, len(body) + 4) + body


def init(source_port, destination_port, tag):
    """An INIT that opens an association; its verification tag is zero as section 8.5.1 asks."""
    return packet(source_port, destination_port, 0, init_chunk(INIT, tag))


def init_ack(source_port, destination_port, peer_tag, cookie):
    padded = cookie + b'\0' * (-len(cookie) % 4)
    parameter = struct.pack('!HH', STATE_COOKIE, len(cookie) + 4) + padded
    return packet(source_port, destination_port, peer_tag, init_chunk(INIT_ACK, peer_tag ^ 0x5A5A5A5A, parameter))


def parse(content):
    """
    (source port, destination port, chunk type, initiate tag, cookie) of an INIT or INIT ACK; None for anything else,
    damaged or cut short.
    """
    if len(content) < 32:
        return None
    source_port, destination_port, _ = struct.unpack_from('!HHI', content)
    (checksum,) = struct.unpack_from('<I', content, 8)
    if checksum != crc32c(content[:8] + b'\0\0\0\0' + content[12:]):
        return None
    kind, _, length, tag = struct.unpack_from('!BBHI', content, 12)
    if kind not in (INIT, INIT_ACK):
        return None
    cookie = b''
    if kind == INIT_ACK and length >= 24:
        parameter, parameter_length = struct.unpack_from('!HH', content, 32)
        if parameter == STATE_COOKIE:
            cookie = content[36 : 32 + parameter_length]
    return source_port, destination_port, kind, tag, cookie
