# SPDX-License-Identifier: GPL-2.0
"""A server that logs every request it sees and answers as the request's target asks (lib.http)."""
import contextlib
import socket
import struct
import threading
import time

from lib.http import Stream, expected_body, parameters, parse_head
from lib.process import PATIENCE_S, eventually


class Request:
    def __init__(self, connection, method, target, version, fields, body):
        self.connection = connection
        self.method = method
        self.target = target
        self.version = version
        self.fields = fields
        self.body = body


class Connection:
    def __init__(self, number, sock):
        self.number = number
        self.socket = sock
        self.stream = Stream(sock)
        self.ending = None  # "eof", "reset", "closed" (by us), "unreadable" (what came was no request)


class EchoServer:
    def __init__(self, namespace, address, port=8080, listener=None):
        """listener: one that was handed over."""
        self.port = port
        self.requests = []
        self.connections = []
        self.threads = []
        self.gate = threading.Event()  # "held" requests are answered when it is set
        with namespace.entered():
            self.listener = listener or self.listen(address, port)
        self.start(self.accept)

    def listen(self, address, port):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return socket.create_server((address, port), family=family, backlog=1024, dualstack_ipv6=address == "::")

    def start(self, run, *arguments):
        thread = threading.Thread(target=run, args=arguments, daemon=True)
        self.threads.append(thread)
        thread.start()

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(len(self.connections), sock)
            self.connections.append(connection)
            self.start(self.serve, connection)

    def serve(self, connection):
        ending = "closed"
        try:
            while self.serve_one(connection):
                pass
            if not connection.ending:
                ending = "eof"
        except (ConnectionError, TimeoutError, EOFError):
            ending = "reset"
        except (ValueError, AssertionError):
            ending = "unreadable"
            with contextlib.suppress(OSError):
                connection.socket.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
                connection.socket.shutdown(socket.SHUT_WR)
                while connection.stream.fill():
                    pass
        connection.socket.close()
        connection.ending = connection.ending or ending

    def serve_one(self, connection):
        """False when the connection is to be closed."""
        stream = connection.stream
        while b"\r\n\r\n" not in stream.buffer:
            if stream.buffer and not plausible(stream.buffer):
                raise ValueError("no request")
            if not stream.fill():
                if stream.buffer:
                    raise EOFError("the stream ended in the middle of a request")
                return False
        first, fields = parse_head(stream.until(b"\r\n\r\n"))
        method, target, version = first.split(" ")
        if fields.get("expect") == "100-continue":
            connection.socket.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "early_ms" in parameters(target):
            return self.answer_early(connection, Request(connection.number, method, target, version, fields, b""))
        request = Request(connection.number, method, target, version, fields, stream.body(fields))
        self.requests.append(request)
        if "upgrade" in parameters(target):
            return self.repeat(connection)
        if "held" in parameters(target):
            self.gate.wait()
        return self.answer(connection, request)

    def answer_early(self, connection, request):
        """The answer goes out first, the body is read later."""
        self.requests.append(request)
        keep = self.answer(connection, request)
        time.sleep(int(parameters(request.target)["early_ms"]) / 1000)
        connection.stream.body(request.fields)
        return keep

    @staticmethod
    def repeat(connection):
        """Another protocol: whatever comes goes back."""
        connection.socket.sendall(b"HTTP/1.1 101 Switching Protocols\r\n"
                                  b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        while connection.stream.fill():
            connection.socket.sendall(connection.stream.take(1 << 16))
        return False

    @staticmethod
    def answer(connection, request):
        wish = parameters(request.target)
        body = expected_body(request.target, request.body)
        keep = (request.version == "HTTP/1.1" and request.fields.get("connection") != "close" and "close" not in wish)
        head = ["HTTP/1.1 200 OK", "Content-Type: text/plain", f"X-Connection: {connection.number}"]
        if not keep:
            head.append("Connection: close")
        if "chunked" in wish:
            head.append("Transfer-Encoding: chunked")
            half = len(body) // 2
            pieces = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (body[:half], body[half:]) if piece]
            pieces.append(b"0\r\n\r\n")
        else:
            head.append(f"Content-Length: {len(body)}")
            pieces = [body]
        if request.method == "HEAD":
            pieces = []
        time.sleep(int(wish.get("delay_ms", 0)) / 1000)
        if "reset" in wish:
            connection.ending = "reset"
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        connection.socket.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + b"".join(pieces))
        if not keep:
            connection.ending = "closed"
        return keep

    def hang_up(self, number):
        """Closes a connection that waits for a request, as at the end of an idle time."""
        eventually(lambda: len(self.connections) > number, "the connection is accepted")
        connection = self.connections[number]
        connection.ending = "closed"
        connection.socket.shutdown(socket.SHUT_RD)

    def targets(self):
        return [request.target for request in self.requests]

    def served(self):
        return len(self.requests)

    def close(self):
        self.gate.set()
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.socket.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "a thread of the server does not end"


def plausible(start):
    """Could a request begin with these bytes?"""
    return start[:1].isalpha() and start[:16].isascii() and not start.startswith(b"PRI * HTTP/2")
