# SPDX-License-Identifier: GPL-2.0
"""A client that reads each answer as one, and knows to which request it belongs."""
import array
import collections
import fcntl
import json
import select
import socket
import struct
import termios

from lib.http import Stream, expected_body, parse_head
from lib.process import PATIENCE_S, eventually

SHED_LINE = "HTTP/1.1 429 Too Many Requests"
SHED_MESSAGE = "weir: limit {}: too many requests, please try again later"

Answer = collections.namedtuple("Answer", "line status fields body")


def check_shed(answer, method="GET"):
    """A 429 is right in every part; returns its Retry-After."""
    fields = dict(answer.fields)
    assert answer.line == SHED_LINE
    retry_after = int(fields.pop("retry-after"))
    length = int(fields.pop("content-length"))
    assert fields.pop("content-type") == "application/json"
    assert fields.pop("connection", "close") == "close"
    limit = fields.pop("weir-limit")
    assert not fields
    assert retry_after >= 1
    if method == "HEAD":
        assert answer.body == b"" and length > 0
        return retry_after
    assert len(answer.body) == length
    assert json.loads(answer.body) == {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": SHED_MESSAGE.format(limit), "reason": "TooManyRequests", "code": 429,
        "details": {"retryAfterSeconds": retry_after, "causes": [
            {"reason": "LimitExceeded", "message": f"limit {limit}: try again in {retry_after} s"}]},
    }
    return retry_after


def unacknowledged(sock):
    """Bytes that the other side has not acknowledged yet."""
    left = array.array("i", [1])
    fcntl.ioctl(sock, termios.TIOCOUTQ, left)
    return left[0]


class Client:
    def __init__(self, place, port, user=None, source=None, receive_buffer=None, prepare=None, protocol=0):
        self.user = user
        self.heard = collections.Counter()  # of each status, the answers that were right
        self.host = f"{place.authority}:{port}"
        with place.client_ns.entered():
            self.socket = socket.socket(place.family, socket.SOCK_STREAM, protocol)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if prepare:
            prepare(self.socket)
        if source:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.socket.bind(source)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect((place.address, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = Stream(self.socket)

    def send(self, data):
        self.socket.sendall(data)

    def settle(self):
        """Waits until the other side has acknowledged everything."""
        eventually(lambda: not unacknowledged(self.socket), "the other side has acknowledged everything")

    def head(self, target, method="GET", version="HTTP/1.1", **fields):
        lines = [f"{method} {target} {version}", f"Host: {self.host}"]
        if self.user is not None:
            lines.append(f"X-Remote-User: {self.user}")
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
        return "\r\n".join(lines).encode() + b"\r\n\r\n"

    def ask(self, target, method="GET", body=None, chunks=None, **fields):
        """Sends a request in one go; chunks: a body of unknown length."""
        if chunks is not None:
            fields["Transfer_Encoding"] = "chunked"
            body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
        elif body is not None:
            fields["Content_Length"] = len(body)
        self.send(self.head(target, method, **fields) + (body or b""))

    def read(self, method="GET"):
        """One answer. Interim ones are passed over."""
        status = 100
        while status // 100 == 1:
            head = self.stream.until(b"\r\n\r\n")
            if head is None:
                raise EOFError("the stream ended where an answer was due")
            line, fields = parse_head(head)
            status = int(line.split(" ")[1])
        return Answer(line, status, fields, b"" if method == "HEAD" else self.stream.body(fields))

    def check(self, answer, target, method="GET", body=b"", last=True):
        """The answer belongs to this request; returns its status. last: nothing may follow it."""
        if answer.status == 429:
            check_shed(answer, method)
        else:
            assert answer.status == 200
            assert answer.body == (b"" if method == "HEAD" else expected_body(target, body))
        assert not (last and self.stream.buffer), "there is more than the answer"
        self.heard[answer.status] += 1
        return answer.status

    def exchange(self, target, method="GET", body=None, chunks=None, **fields):
        """Asks, and returns an answer that belongs to what was asked."""
        self.ask(target, method, body, chunks, **fields)
        answer = self.read(method)
        self.check(answer, target, method, b"".join(chunks) if chunks is not None else body or b"")
        return answer

    def get(self, target, **fields):
        return self.exchange(target, **fields).status

    def drive(self, n, path="/r", **fields):
        """n requests, one after the other: the status of each."""
        return [self.get(f"{path}/{i}", **fields) for i in range(n)]

    def readable(self, seconds):
        """Does something come within that time?"""
        return bool(select.select([self.socket], [], [], seconds)[0])

    def expect_end(self):
        """The stream has ended cleanly, and there was nothing more in it."""
        assert not self.stream.fill(), f"there is more: {self.stream.buffer!r}"
        assert not self.stream.buffer

    def rest(self):
        """Everything up to the end of the stream."""
        while self.stream.fill():
            pass
        return self.stream.take(len(self.stream.buffer))

    def end_of_requests(self):
        self.socket.shutdown(socket.SHUT_WR)

    def close(self):
        self.socket.close()

    def reset(self):
        """Ends the connection by a RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
