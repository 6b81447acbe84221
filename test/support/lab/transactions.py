"""
Tells the transactions of nftables in this network namespace, one JSON line each: a list of its changes as text. nft's own monitor (1.0.6) ends
when a rule that uses a timeout object goes.
"""

import json
import re
import socket
import struct

NETLINK_NETFILTER = 12
SO_RCVBUFFORCE = 33
SOL_NETLINK, NETLINK_ADD_MEMBERSHIP = 270, 1
NFNLGRP_NFTABLES = 7
SUBSYSTEM_NFTABLES = 10
# By enum nf_tables_msg_types.
KINDS = {0: 'table', 3: 'chain', 6: 'rule', 9: 'set', 12: 'elements', 18: 'object'}
DELETES = 2
NEW_GENERATION = 15
FAMILIES = {1: 'inet', 2: 'ip', 10: 'ip6'}
# NFTA_*_TABLE or NFTA_TABLE_NAME, then NFTA_RULE_CHAIN, NFTA_CHAIN_NAME is 3, NFTA_SET_NAME, NFTA_OBJ_NAME.
TABLE, NAME, CHAIN_NAME = 1, 2, 3
USED = re.compile(rb'connect-retry-(?:tcp|udp)-\d+-[\d-]+')


def texts(payload):
    """Attributes of the first level, by number."""
    found, at = {}, 0
    while at + 4 <= len(payload):
        length, number = struct.unpack_from('=HH', payload, at)
        found[number & 0x3FFF] = payload[at + 4 : at + length]
        at += max(4, (length + 3) & ~3)
    return found


def describe(number, family, payload):
    for first, kind in KINDS.items():
        if number not in (first, first + DELETES):
            continue
        attributes = texts(payload)
        names = [attributes.get(TABLE), attributes.get(CHAIN_NAME if kind == 'chain' else NAME) if kind != 'table' else None]
        words = [name.rstrip(b'\0').decode(errors='replace') for name in names if name is not None]
        uses = [f'uses {name.decode()}' for name in USED.findall(payload)] if kind == 'rule' else []
        return ' '.join(['add' if number == first else 'delete', kind, FAMILIES.get(family, str(family)), *words, *uses])
    return f'message {number}'


def main():
    monitor = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
    monitor.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
    # The kernel sends in the name of port 0, and to no socket of the same.
    monitor.bind((0, 0))
    monitor.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, NFNLGRP_NFTABLES)
    print('[]', flush=True)
    changes = []
    while True:
        received, at = monitor.recv(1 << 20), 0
        while at + 16 <= len(received):
            length, kind = struct.unpack_from('=IH', received, at)
            number, family = kind & 0xFF, received[at + 16]
            if kind >> 8 == SUBSYSTEM_NFTABLES and number == NEW_GENERATION:
                print(json.dumps(changes), flush=True)
                changes = []
            elif kind >> 8 == SUBSYSTEM_NFTABLES:
                changes.append(describe(number, family, received[at + 20 : at + length]))
            at += (length + 3) & ~3


main()
