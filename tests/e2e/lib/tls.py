# SPDX-License-Identifier: GPL-2.0
"""A TLS server that answers each HTTP/1.1 request with its target, and clients of it."""
import contextlib
import functools
import io
import re
import socket
import ssl
import threading

from lib.process import PATIENCE_S, run


class TlsServer:
    def __init__(self, namespace, address, directory, port=8443, listener=None):
        """listener: one that was handed over."""
        self.port = port
        self.targets = []
        self.threads = []
        self.connections = []
        certificate, key = directory / f"tls-{port}.crt", directory / f"tls-{port}.key"
        if not certificate.exists():
            run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-subj", "/CN=weir", "-days", "2", "-keyout", key, "-out", certificate)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with namespace.entered():
            self.listener = listener or socket.create_server((address, port), family=family, backlog=128)
        self.start(self.accept)

    def start(self, work, *arguments):
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self.threads.append(thread)
        thread.start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections.append(connection)
                self.start(self.serve, connection)

    def serve(self, connection):
        with contextlib.suppress(OSError), self.context.wrap_socket(connection, server_side=True) as tls:
            self.connections.append(tls)
            stream = tls.makefile("rb")
            while (first := stream.readline()) and b"\r\n" in iter(stream.readline, b""):
                target = first.split(b" ")[1]
                self.targets.append(target.decode())
                tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(target), target))

    def served(self):
        return len(self.targets)

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "a thread of the server does not end"


# What costs a token in a ClientHello, where its random bytes look like it by chance (docs/internals/reading.md): an empty line, or what may
# be the beginning of a request of HTTP/0.9.
COSTS = re.compile(rb"\n\r*\n|GET[\0- ]|G(ET?)?\Z")


class TlsSocket(io.RawIOBase):
    """A client's end of TLS. Its ClientHello costs nothing, as most do: one that would is not sent, and another one is made."""

    RECORD = 16384

    def __init__(self, plain, context, costs=False):
        super().__init__()
        self.plain = plain
        hello = None
        while hello is None or bool(COSTS.search(hello)) != costs:
            self.came, self.due = ssl.MemoryBIO(), ssl.MemoryBIO()
            self.tls = context.wrap_bio(self.came, self.due)
            with contextlib.suppress(ssl.SSLWantReadError):
                self.tls.do_handshake()
            hello = self.due.read()
        plain.sendall(hello)
        self.do(self.tls.do_handshake)

    def do(self, step, *arguments):
        """A step that may have to send, and to wait for what comes."""
        while True:
            try:
                return step(*arguments)
            except ssl.SSLWantReadError:
                pass
            finally:
                if self.due.pending:
                    self.plain.sendall(self.due.read())
            if came := self.plain.recv(self.RECORD):
                self.came.write(came)
            else:
                self.came.write_eof()

    def sendall(self, data):
        for at in range(0, len(data), self.RECORD):
            self.do(self.tls.write, data[at:at + self.RECORD])

    def readable(self):
        return True

    def readinto(self, buffer):
        return self.do(self.tls.read, len(buffer), buffer)

    def unwrap(self):
        """Says goodbye, and waits until the server has gone."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.unwrap()
        self.plain.sendall(self.due.read())
        while self.plain.recv(self.RECORD):
            pass

    def close(self):
        super().close()
        self.plain.close()


class TlsClient:
    """One connection. A request is one record."""

    def __init__(self, place, port, version=None, source=None, costs=False):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if version:
            context.minimum_version = context.maximum_version = version
        with place.client_ns.entered():
            plain = socket.create_connection((place.address, port), PATIENCE_S, source)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = TlsSocket(plain, context, costs)
        self.stream = io.BufferedReader(self.socket)

    def ask(self, target):
        self.socket.sendall(f"GET {target} HTTP/1.1\r\nHost: weir\r\n\r\n".encode())

    def read(self):
        """The body of the next answer, which must be one that the server has sent."""
        assert self.stream.readline() == b"HTTP/1.1 200 OK\r\n"
        fields = dict(line.rstrip().split(b": ") for line in iter(self.stream.readline, b"\r\n"))
        return self.stream.read(int(fields[b"Content-Length"])).decode()

    def get(self, target):
        self.ask(target)
        assert self.read() == target

    def drive(self, n, prefix="/"):
        for i in range(n):
            self.get(f"{prefix}{i}")

    def close(self):
        self.stream.close()


def drive_together(clients, n):
    """Each client makes n requests, all at once; a failure of one is the caller's."""
    failures = []

    def drive(client, number):
        try:
            client.drive(n, f"/{number}/")
        except Exception as failure:  # pylint: disable=broad-except
            failures.append(failure)

    threads = [threading.Thread(target=functools.partial(drive, client, i)) for i, client in enumerate(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
