"""Endpoints that answer late, and a client that waits for them.

resolve ADDRESS       Answers each datagram to port 53 after as long as it says. Prints its number, and after how many seconds.
ask ADDRESS QUERIES   Sends queries, [number, seconds] each, by a socket each that takes answers of ADDRESS only. Prints the numbers of those answered.
accept SECONDS        Answers the first SYN to port 80 that comes in over IPv4, in place of the kernel. Prints `sent` when it has.
"""

import json
import select
import socket
import struct
import sys
import threading
import time

ETH_P_IP = 0x0800
SYN, SYN_ACK = 0x02, 0x12
#: For how long the client waits after the last answer is due.
GRACE_SECONDS = 2


def datagram_socket(address):
    return socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, socket.SOCK_DGRAM)


def resolve(address):
    server = datagram_socket(address)
    server.bind((address, 53))

    def answer(number, delay, sent, client):
        time.sleep(max(0, sent + delay - time.monotonic()))
        server.sendto(str(number).encode(), client)
        print(json.dumps([number, time.monotonic() - sent]), flush=True)

    print('ready', flush=True)
    while True:
        query, client = server.recvfrom(100)
        threading.Thread(target=answer, args=(*json.loads(query), client), daemon=True).start()


def ask(address, text):
    queries, waiting = json.loads(text), {}
    for number, delay in queries:
        client = datagram_socket(address)
        client.connect((address, 53))
        client.send(json.dumps([number, delay, time.monotonic()]).encode())
        waiting[client] = number
    answered, end = [], time.monotonic() + max(delay for _, delay in queries) + GRACE_SECONDS
    while waiting and time.monotonic() < end:
        for client in select.select(list(waiting), [], [], max(0, end - time.monotonic()))[0]:
            del waiting[client]
            answered.append(int(client.recv(100)))
    print(json.dumps(answered))


def checksum(data):
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def accept(seconds):
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP))
    answers = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
    print('ready', flush=True)
    while True:
        packet = packets.recv(65535)
        header = (packet[0] & 0x0F) * 4
        if packet[9] != socket.IPPROTO_TCP or packet[header + 13] != SYN:
            continue
        port, target, sequence = struct.unpack_from('!HHI', packet, header)
        if target == 80:
            break
    time.sleep(float(seconds))
    parts = [80, port, 1, (sequence + 1) & 0xFFFFFFFF, 5 << 4, SYN_ACK, 65535]
    layout = '!HHIIBBHHH'
    pseudo = packet[16:20] + packet[12:16] + struct.pack('!HH', socket.IPPROTO_TCP, struct.calcsize(layout))
    total = checksum(pseudo + struct.pack(layout, *parts, 0, 0))
    answers.sendto(struct.pack(layout, *parts, total, 0), (socket.inet_ntoa(packet[12:16]), 0))
    print('sent', flush=True)


if __name__ == '__main__':
    {'resolve': resolve, 'ask': ask, 'accept': accept}[sys.argv[1]](*sys.argv[2:])
