# SPDX-License-Identifier: GPL-2.0
"""A client's connection, which holds each answer against the request that it belongs to."""
import asyncio
import collections
import socket
import ssl
import struct
import time

from http_stream import Stream
from keepalive import keep_alive
from lib.client import Answer, check_shed
from lib.http import expected_body, parse_head

HISTORY = 12
RECEIVE_BYTES = 1 << 16
CONTINUE = b"HTTP/1.1 100"


class Gone(Exception):
    """The connection has ended, as it may."""


class Connection:
    def __init__(self, site, server, place, user, source):
        self.site = site
        self.ledger = site.ledger
        self.server = server
        self.place = place
        self.user = user
        self.source = source or place.client_address
        self.sent = collections.deque()  # requests whose answers are to come, in their order
        self.closing = False             # an answer has said that it is the last one
        self.may_end = False             # nobody is to blame when it does
        self.waits_since = None          # for something to come
        self.history = collections.deque(maxlen=HISTORY)
        self.opened_ns = time.monotonic_ns()
        self.socket = None
        self.stream = None

    async def open(self, receive_bytes=None):
        self.socket = self.place.socket(self.source if self.source != self.place.client_address else None)
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.waits_since = time.monotonic()
        await self.connect()
        self.waits_since = None

    async def connect(self):
        loop = asyncio.get_running_loop()
        keep_alive(self.socket)
        await loop.sock_connect(self.socket, (self.place.address, self.server.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = Stream(lambda: loop.sock_recv(self.socket, RECEIVE_BYTES))

    async def write(self, data):
        await asyncio.get_running_loop().sock_sendall(self.socket, data)

    def note(self, what):
        self.history.append((time.monotonic(), what))

    def blame(self, what):
        self.site.violate(what, self)

    def request(self, path, method="GET", body=None, chunks=None, trailers=(), version="HTTP/1.1", fields=(),
                user=None, **wish):
        """A request that has not been sent yet: its bytes are request.data. user: another one's than the connection's."""
        request = self.ledger.ask(self, path, method)
        request.user = user or self.user
        words = "".join(f"&{name}={value}" for name, value in wish.items())
        request.target = f"{request.id}.test:1" if method == "CONNECT" else f"{path}?id={request.id}{words}"
        lines = [f"{method} {request.target} {version}", "Host: soak", *(f"{name}: {value}" for name, value in fields)]
        if request.user:
            lines.append(f"X-Remote-User: {request.user}")
        coded = body or b""
        if chunks is not None:
            body = b"".join(chunks)
            lines.append("Transfer-Encoding: chunked")
            coded = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n"
            coded += b"".join(trailer + b"\r\n" for trailer in trailers) + b"\r\n"
        elif body is not None:
            lines.append(f"Content-Length: {len(body)}")
        request.body = body or b""
        request.data = "\r\n".join(lines).encode() + b"\r\n\r\n" + coded
        self.sent.append(request)
        self.note(f"asks {request.id} {method} {request.target[:80]}")
        return request

    async def send(self, data):
        """What cannot be sent any more is no error: what came in answer tells."""
        try:
            await self.write(data)
        except (ConnectionError, ssl.SSLError) as error:
            self.note(f"cannot send: {error}")

    async def exchange(self, path, *words, **wish):
        """Asks, and returns the status of the answer."""
        request = self.request(path, *words, **wish)
        await self.send(request.data)
        return await self.read()

    async def read(self, fate_of_400="rejected"):
        """The answer to the oldest request that has none; returns its status."""
        request = self.sent[0]
        answer = await self.answer(request.method)
        self.sent.popleft()
        self.note(f"got {answer.status} for {request.id}")
        if answer.fields.get("connection") == "close":
            self.closing = self.may_end = True
        try:
            self.check(request, answer)
        except AssertionError as error:
            self.blame(f"{request}: a wrong answer: {error} {answer.line} {answer.fields} {answer.body[:200]!r}")
        if not self.sent and self.stream.buffer:
            self.blame(f"{request}: more than its answer came: {self.stream.buffer[:200]!r}")
        self.ledger.settle(request, {429: "shed", 400: fate_of_400}.get(answer.status, "served"))
        return answer.status

    @staticmethod
    def check(request, answer):
        if answer.status == 429:
            check_shed(answer, request.method)
        elif answer.status != 400:
            assert answer.status == (101 if "upgrade=" in request.target else 200), "an unexpected status"
            if answer.status == 200 and request.method != "CONNECT":
                whole = b"" if request.method == "HEAD" else expected_body(request.target, request.body)
                assert answer.body == whole, "the body is not this request's"

    async def answer(self, method):
        """One answer, but for interim ones."""
        self.waits_since = time.monotonic()
        try:
            while True:
                head = await self.stream.until(b"\r\n\r\n")
                if head is None:
                    raise EOFError("the connection ended where an answer was due")
                line, fields = parse_head(head)
                status = int(line.split(" ")[1])
                if status != 100:
                    bare = method == "HEAD" or status == 101 or (method == "CONNECT" and status == 200)
                    return Answer(line, status, fields, b"" if bare else await self.stream.body(fields))
        except (EOFError, ConnectionError, ssl.SSLError) as error:
            self.ended(error)
        except ValueError as error:
            self.blame(f"no answer: {error!r} {self.stream.buffer[:200]!r}")
        finally:
            self.waits_since = None

    async def is_continued(self):
        """`100 Continue` has come, and not an answer."""
        self.waits_since = time.monotonic()
        try:
            while len(self.stream.buffer) < len(CONTINUE) and await self.stream.fill():
                pass
        except ConnectionError as error:
            self.ended(error)
        self.waits_since = None
        return self.stream.buffer.startswith(CONTINUE)

    def ended(self, error):
        self.note(f"ended: {error}")
        if not (self.may_end or self.server.resets_since(self.opened_ns)):
            self.blame(f"a connection of {self.user or self.source} at {self.server} ended by itself: {error!r}")
        raise Gone from error

    async def line(self, text):
        """Behind an upgrade: a line goes, and comes back."""
        request = self.ledger.ask(self, "line", "LINE")
        request.user = None
        request.data = b"%d %s\n" % (request.id, text)
        self.sent.append(request)
        self.note(f"sends line {request.id}")
        await self.send(request.data)
        self.waits_since = time.monotonic()
        try:
            back = await self.stream.until(b"\n")
        except (EOFError, ConnectionError) as error:
            self.ended(error)
        self.waits_since = None
        self.sent.popleft()
        if back is None or back + b"\n" != request.data:
            self.blame(f"{request}: what came back is another line: {back!r}")
        self.ledger.settle(request, "served")

    async def expect_end(self):
        """Nothing more may come, and the stream must end."""
        self.waits_since = time.monotonic()
        try:
            while await self.stream.fill():
                self.blame(f"more came where the end was due: {self.stream.buffer[:200]!r}")
        except (ConnectionError, ssl.SSLError) as error:
            self.note(f"ended: {error}")
        self.waits_since = None

    def end_of_requests(self):
        self.note("half-closes")
        self.may_end = True
        self.socket.shutdown(socket.SHUT_WR)

    def leave(self):
        """Goes away, whatever is still to come."""
        self.note("closes")
        for request in self.sent:
            self.ledger.settle(request, "left")
        self.sent.clear()
        self.socket.close()

    def reset(self):
        self.note("resets")
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.leave()


class TlsConnection(Connection):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE

    async def connect(self):
        await super().connect()
        reader, self.writer = await asyncio.open_connection(sock=self.socket, ssl=self.context, server_hostname="soak")
        self.stream = Stream(lambda: reader.read(RECEIVE_BYTES))

    async def write(self, data):
        self.writer.write(data)
        await self.writer.drain()

    def leave(self):
        super().leave()
        self.writer.transport.abort()
