# SPDX-License-Identifier: GPL-2.0
"""What the test server and the test client both know of HTTP."""
import urllib.parse


def parameters(target):
    """What a target asks of the server: size, chunked, delay_ms, early_ms, echo, close, reset, upgrade, held."""
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(target).query))


def expected_body(target, body=b""):
    """The body of the answer to this request: no two targets have the same one."""
    wish = parameters(target)
    if "echo" in wish:
        return body
    line = target.encode() + b"\n"
    size = int(wish.get("size", len(line)))
    return (line * (size // len(line) + 1))[:size]


def parse_head(head):
    """The first line and the fields, their names in lower case."""
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or name != name.strip():
            raise ValueError(f"a bad field: {line!r}")
        fields[name.lower()] = value.strip()
    return first, fields


class Stream:
    """The bytes of a socket, as they are wanted."""

    def __init__(self, sock):
        self.socket = sock
        self.buffer = b""

    def fill(self):
        """False at the end of the stream."""
        data = self.socket.recv(1 << 16)
        self.buffer += data
        return bool(data)

    def take(self, length):
        taken, self.buffer = self.buffer[:length], self.buffer[length:]
        return taken

    def until(self, mark):
        """The bytes before the mark, which is consumed; None when the stream ends first."""
        while mark not in self.buffer:
            if not self.fill():
                return None
        taken, _, self.buffer = self.buffer.partition(mark)
        return taken

    def exactly(self, length):
        parts, missing = [self.take(length)], length
        missing -= len(parts[0])
        while missing:
            data = self.socket.recv(min(missing, 1 << 20))
            if not data:
                raise EOFError(f"the stream ended {missing} bytes early")
            parts.append(data)
            missing -= len(data)
        return b"".join(parts)

    def chunked(self):
        body = b""
        while size := int(self.line(), 16):
            body += self.exactly(size)
            assert self.exactly(2) == b"\r\n"
        while self.line():
            pass
        return body

    def line(self):
        line = self.until(b"\r\n")
        if line is None:
            raise EOFError("the stream ended in the middle of a message")
        return line

    def body(self, fields):
        """The body that goes with a head."""
        if fields.get("transfer-encoding") == "chunked":
            return self.chunked()
        return self.exactly(int(fields.get("content-length", 0)))
