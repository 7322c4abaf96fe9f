# SPDX-License-Identifier: GPL-2.0
"""Sends many streams at once, each on a connection of its own, and collects what comes back."""
import array
import contextlib
import fcntl
import re
import selectors
import socket
import struct
import termios
import time
from random import Random

from lib.process import PATIENCE_S

FIRST_PORT = 20000
AT_ONCE = 400
# So long a server may be silent before it is told that no more will come, which makes some forget what they still have.
QUIET_S = 0.1
QUIET_WITH_ANSWERS_DUE_S = 0.5
FINAL = re.compile(rb"(?:^|\n)HTTP/1\.[01] ([2-5][0-9][0-9])")


class Sending:
    """
    The sending side is closed when all is answered, or nothing comes any more. What may hang is given up where the other
    side does not even acknowledge it.
    """

    def __init__(self, stream, address, source, cut, may_hang):
        self.stream = stream
        self.may_hang = may_hang
        self.pieces = [memoryview(piece) for piece in cut(stream)]
        self.written = self.finished = self.ended = False
        self.heard = time.monotonic()
        self.answer = b""
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.bind(source)
        self.socket.connect_ex(address)

    def wanted(self):
        return selectors.EVENT_READ | (0 if self.written else selectors.EVENT_WRITE)

    def step(self, events):
        try:
            if events & selectors.EVENT_WRITE:
                self.write()
            if events & selectors.EVENT_READ:
                self.read()
        except (ConnectionResetError, BrokenPipeError):
            self.ended = True

    def write(self):
        """One piece, or the part of it that there is room for."""
        if self.pieces:
            rest = self.pieces[0][self.socket.send(self.pieces[0]):]
            self.pieces[:1] = [rest] if rest else []
        self.written = not self.pieces
        self.heard = time.monotonic()

    def read(self):
        data = self.socket.recv(1 << 16)
        self.answer += data
        self.ended |= not data
        self.heard = time.monotonic()

    def statuses(self):
        """Of the final answers."""
        return [int(status) for status in FINAL.findall(self.answer)]

    def answered(self):
        return self.written and self.stream.whole and len(self.statuses()) == len(self.stream.requests)

    def under_way(self):
        """Something is not acknowledged yet."""
        left = array.array("i", [0])
        fcntl.ioctl(self.socket, termios.TIOCOUTQ, left)
        return left[0] > 0

    def quiet(self, now):
        patience = QUIET_WITH_ANSWERS_DUE_S if self.stream.whole else QUIET_S
        return self.written and now - self.heard > patience

    def finish(self, now):
        if self.ended or self.finished or not (self.quiet(now) or self.answered()):
            return
        if self.under_way():
            self.ended |= self.may_hang
            self.heard = now
            return
        self.finished = True
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)


class Crowd:
    def __init__(self, namespace, port, streams, source, cut, may_hang):
        self.namespace = namespace
        self.source = source
        self.cut = cut
        self.may_hang = may_hang
        self.address = ("127.0.0.1", port)
        self.streams = streams
        self.sendings = []
        self.selector = selectors.DefaultSelector()

    def open(self):
        return [key.data for key in self.selector.get_map().values()]

    def fill(self):
        with self.namespace.entered():
            while len(self.sendings) < len(self.streams) and len(self.selector.get_map()) < AT_ONCE:
                stream, port = self.streams[len(self.sendings)], FIRST_PORT + len(self.sendings)
                sending = Sending(stream, self.address, (self.source, port), self.cut, self.may_hang(stream))
                self.sendings.append(sending)
                self.selector.register(sending.socket, sending.wanted(), sending)

    def step(self):
        for key, events in self.selector.select(QUIET_S / 4):
            sending, wanted = key.data, key.data.wanted()
            sending.step(events)
            if sending.wanted() != wanted:
                self.selector.modify(sending.socket, sending.wanted(), sending)
        now = time.monotonic()
        for sending in self.open():
            sending.finish(now)
            if sending.ended:
                self.drop(sending)

    def drop(self, sending):
        """Nothing of it is sent again."""
        self.selector.unregister(sending.socket)
        sending.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sending.socket.close()

    def done(self):
        return len(self.sendings) == len(self.streams) and not self.selector.get_map()

    def close(self):
        for sending in self.open():
            self.drop(sending)
        self.selector.close()


def in_one(stream):
    return [stream.data] if stream.data else []


def in_pieces(stream):
    """Up to five, cut somewhere, and the same ones every time."""
    random = Random(stream.name)
    cuts = sorted(random.randrange(len(stream.data)) for _ in range(random.randint(1, 4))) if stream.data else []
    pieces = [stream.data[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream.data)])]
    return [piece for piece in pieces if piece]


def send_all(namespace, port, streams, source="127.0.0.1", cut=in_one, may_hang=lambda stream: False):
    """What came of each stream, in order. Stream number i comes from port FIRST_PORT + i of `source`. cut: how it is sent."""
    with contextlib.closing(Crowd(namespace, port, streams, source, cut, may_hang)) as crowd:
        deadline = time.monotonic() + PATIENCE_S
        while not crowd.done():
            crowd.fill()
            crowd.step()
            hanging = [sending.stream.name for sending in crowd.open()]
            assert time.monotonic() < deadline, f"never ended: {hanging}"
        return crowd.sendings
