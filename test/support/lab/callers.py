"""Connects again and again, sends the text of standard input, and leaves the last 200 connections open, until it is killed. Writes a line when it has so many.

Arguments: address, port, connections a second, and the addresses that they come from one after the other, which eth0 gets; without any it is the
namespace's own.
"""

import collections
import socket
import subprocess
import sys
import time

HELD = 200
TIMEOUT_S = 1


def main():
    address, port, a_second, sources = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]
    text = sys.stdin.buffer.read()
    for source in sources:
        subprocess.run(['ip', 'address', 'add', f'{source}/32', 'dev', 'eth0'], check=True)
    sources = sources or ['0.0.0.0']
    held = collections.deque()
    due = time.monotonic()
    number = 0
    while True:
        due += 1 / a_second
        time.sleep(max(0, due - time.monotonic()))
        caller = socket.socket()
        caller.settimeout(TIMEOUT_S)
        number += 1
        try:
            caller.bind((sources[number % len(sources)], 0))
            caller.connect((address, port))
            caller.send(text)
        except OSError:
            # A connection that is refused or reset is what the node is to do.
            pass
        held.append(caller)
        if number == HELD:
            print(number, flush=True)
        if len(held) > HELD:
            held.popleft().close()


main()
