"""Slow cables between network namespaces and the bridge `switch` of this one.

    slow_cables.py DELAY LOSS NAME=ADDRESS...

Each packet takes DELAY seconds, in both directions, and a part of LOSS of them is lost. A cable is a pair of tap
devices, between which this program carries the packets: small kernels have no `tc netem`. Prints "ready", and runs
until it is ended.
"""

import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 2, 0x1000
CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def tap(name):
    """A tap device in the namespace of this process."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP | IFF_NO_PI))
    return device


def enter(namespace):
    if libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def ip(words):
    subprocess.run(["ip", *words.split()], check=True)


def cable(name, address):
    """Both ends of a new cable."""
    near = tap(name)
    ip(f"link set dev {name} master switch up")
    with open("/run/netns/" + name) as other:
        enter(other)
    far = tap("cable")
    ip(f"addr add {address}/24 dev cable")
    ip("link set dev cable up")
    enter(own)
    return near, far


own = open("/proc/self/ns/net")
delay, loss = float(sys.argv[1]), float(sys.argv[2])
others, poll = {}, select.epoll()
for word in sys.argv[3:]:
    near, far = cable(*word.split("="))
    others[near], others[far] = far, near
    for end in (near, far):
        poll.register(end, select.EPOLLIN)
print("ready", flush=True)

# Packets on their way: when they arrive, their number, where, and their bytes.
moving, number = [], 0
while True:
    wait = max(0, moving[0][0] - time.monotonic()) if moving else -1
    for end, _ in poll.poll(wait):
        packet = os.read(end, 1 << 16)
        if random.random() >= loss:
            number += 1
            heapq.heappush(moving, (time.monotonic() + delay, number, others[end], packet))
    while moving and moving[0][0] <= time.monotonic():
        _, _, end, packet = heapq.heappop(moving)
        try:
            os.write(end, packet)
        except OSError:
            # A device that isn't up, or is full, loses it.
            pass
