# SPDX-License-Identifier: GPL-2.0
"""Frames that stand in memory that their sender can still write to: the ring of a packet socket (PACKET_TX_RING)."""
import contextlib
import mmap
import os
import socket
import struct
import subprocess
import sys

from lib.outsider import Outsider
from lib.process import eventually
from lib.raw import ACK, PSH, tcp_segment

SOL_PACKET, PACKET_VERSION, PACKET_TX_RING = 263, 10, 13
TPACKET_V2 = 1
SEND_REQUEST = 1  # the status of a frame that is to go
NEITHER = b"none"
BLOCK = 8192
HEADER = 32  # what stands before a frame: its status first, its length behind that
ETHERNET, IPV4, SEQ = 14, 20, 4  # a sequence number stands behind the ports

# Two texts in turn, which stand in a file in memory, at one place of the ring.
FLIP = """
import mmap, sys
fd, size, at, texts = map(int, sys.argv[1:])
ring, texts = mmap.mmap(fd, size), mmap.mmap(texts, 8)
end = at + 4
while True:
    ring[at:end] = texts[:4]
    ring[at:end] = texts[4:]
"""


class RingSender(Outsider):
    """Its data comes from the ring, which has room for one frame, by the loopback interface of the server's host."""

    def __init__(self, place, port):
        super().__init__(place, port)
        with place.server_ns.entered():
            self.ring = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self.ring.bind(("lo", 0x0800))
        self.ring.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
        self.ring.setsockopt(SOL_PACKET, PACKET_TX_RING, struct.pack("IIII", BLOCK, 1, BLOCK, 1))
        self.memory = mmap.mmap(self.ring.fileno(), BLOCK)
        self.numbers_file = os.memfd_create("numbers")
        os.ftruncate(self.numbers_file, 8)
        self.numbers = mmap.mmap(self.numbers_file, 8)

    def show(self, data):
        """Sends data as the next of the stream."""
        segment = tcp_segment(self.ends, self.ports, self.next, self.peer, ACK | PSH, b"", data)
        frame = bytes(12) + b"\x08\x00" + self.ip(segment)
        self.memory[HEADER:HEADER + len(frame)] = frame
        self.memory[4:12] = struct.pack("II", len(frame), len(frame))
        self.memory[:4] = struct.pack("I", SEND_REQUEST)
        self.ring.send(b"")

    @contextlib.contextmanager
    def flipping(self):
        """Another process writes the two numbers of flip() to the frame's header, in turn, all the time."""
        at = HEADER + ETHERNET + IPV4 + SEQ
        fds = [self.ring.fileno(), self.numbers_file]
        command = [sys.executable, "-c", FLIP, *map(str, (fds[0], BLOCK, at, fds[1]))]
        process = subprocess.Popen(command, pass_fds=fds)
        try:
            self.memory[at:at + 4] = NEITHER
            eventually(lambda: self.memory[at:at + 4] != NEITHER, "it is flipped")
            yield
        finally:
            process.kill()
            process.wait()

    def flip(self, one, other):
        self.numbers[:] = struct.pack("!II", one & 0xffffffff, other & 0xffffffff)

    def close(self):
        super().close()
        self.numbers.close()
        os.close(self.numbers_file)
        self.memory.close()
        self.ring.close()
