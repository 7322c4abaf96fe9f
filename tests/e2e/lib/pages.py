# SPDX-License-Identifier: GPL-2.0
"""A client that can change what it has sent, because packets point at its pages, and a server that reads when it is told to."""
import contextlib
import ctypes
import mmap
import os
import socket
import struct
import subprocess
import sys

from lib.client import Client
from lib.netns import libc
from lib.process import PATIENCE_S, eventually

SO_ZEROCOPY = 60
MSG_ZEROCOPY = 0x4000000
ENDED = b" HTTP/1.1\r\n"  # as a request's first line
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
TOTAL_RETRANSMISSIONS = 100  # in TCP_INFO

# Two letters in turn, at one place of a file in memory.
FLIP = """
import mmap, sys
memory, at = mmap.mmap(int(sys.argv[1]), 0), int(sys.argv[2])
while True:
    memory[at] = 97
    memory[at] = 98
"""


def filled(target, length, method="GET", more=""):
    """A request of this length; more: fields that it has besides."""
    start = f"{method} {target} HTTP/1.1\r\nHost: x\r\n{more}X-Fill: ".encode()
    return start + b"f" * (length - len(start) - 4) + b"\r\n\r\n"


def many(length):
    """As many other requests as this length has room for."""
    one = b"GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"
    n = length // len(one) - 2
    return one * n + filled("/hidden", length - n * len(one))


def retransmissions(sock):
    return struct.unpack_from("I", sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), TOTAL_RETRANSMISSIONS)[0]


def forget_notices(sock):
    """What the kernel says of earlier MSG_ZEROCOPY takes room."""
    sock.settimeout(0)
    with contextlib.suppress(BlockingIOError):
        while True:
            sock.recvmsg(0, 256, socket.MSG_ERRQUEUE)
    sock.settimeout(None)


class Pages:
    """A file in memory that is sent without a copy of it."""

    def __init__(self, size=1 << 20):
        self.file = os.memfd_create("pages")
        os.ftruncate(self.file, size)
        self.memory = mmap.mmap(self.file, size)

    def write(self, data, at=0):
        self.memory[at:at + len(data)] = data

    def send(self, sock, length, how="sendfile"):
        before = sock.gettimeout()
        sock.settimeout(None)  # or what has no room would be an error
        try:
            {"sendfile": self.send_file, "splice": self.splice, "zerocopy": self.send_zerocopy}[how](sock, length)
        finally:
            sock.settimeout(before)

    def send_file(self, sock, length):
        at = 0
        while at < length:
            at += os.sendfile(sock.fileno(), self.file, at, length - at)

    def splice(self, sock, length):
        """Through a pipe, which has room for 64 KiB."""
        out, into = os.pipe()
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        vector = (ctypes.c_size_t * 2)(start, length)
        try:
            assert libc.vmsplice(into, vector, 1, 0) == length
            assert os.splice(out, sock.fileno(), length) == length
        finally:
            os.close(out)
            os.close(into)

    def send_zerocopy(self, sock, length):
        sock.setsockopt(socket.SOL_SOCKET, SO_ZEROCOPY, 1)
        at = 0
        while at < length:
            with memoryview(self.memory) as memory, memory[at:length] as rest:
                at += sock.send(rest, MSG_ZEROCOPY)
            forget_notices(sock)

    @contextlib.contextmanager
    def flipped(self, at):
        """Another process changes a letter between `a` and `b` all the time."""
        process = subprocess.Popen([sys.executable, "-c", FLIP, str(self.file), str(at)], pass_fds=[self.file])
        try:
            self.write(b"-", at)
            eventually(lambda: self.memory[at] != ord("-"), "it changes")
            yield
        finally:
            process.kill()
            process.wait()

    def close(self):
        with contextlib.suppress(BufferError):  # what ctypes was given goes later
            self.memory.close()
        os.close(self.file)


class Patient:
    """A server of one connection that reads, and answers, only when it is told to."""

    def __init__(self, place, port):
        self.port = port
        self.taken = b""  # all that it has read
        self.socket = None
        with place.server_ns.entered():
            self.listener = socket.create_server((place.address, port), family=place.family)

    def take(self, length, patience_s=PATIENCE_S):
        """Reads so many bytes, which must come, and returns them."""
        if not self.socket:
            self.socket, _ = self.listener.accept()
        self.socket.settimeout(patience_s)
        data = self.socket.recv(length, socket.MSG_WAITALL)
        assert len(data) == length, "the stream ended early"
        self.taken += data
        return data

    def answer(self, n=1, what=OK):
        self.socket.sendall(what * n)

    def forget(self):
        self.taken = b""

    def served(self):
        return self.taken.count(ENDED)

    def close(self):
        self.listener.close()
        if self.socket:
            self.socket.close()


class Turncoat(Client):
    """It shows one thing, and has the server read another one, if it can."""

    def __init__(self, place, server):
        super().__init__(place, server.port)
        self.server = server
        self.pages = Pages()

    def show(self, shown, hidden, how="sendfile"):
        """Sends pages, and changes them when they have come. What the server reads then."""
        assert len(shown) == len(hidden)
        self.pages.write(shown)
        self.pages.send(self.socket, len(shown), how)
        self.settle()
        self.pages.write(hidden)
        return self.server.take(len(shown))

    def hear(self, n=1):
        """The server answers all that it was asked."""
        self.server.answer(n)
        assert [self.read().status for _ in range(n)] == [200] * n

    def close(self):
        super().close()
        self.pages.close()
