# SPDX-License-Identifier: GPL-2.0
"""HTTP/2 without TLS, by servers of a few lines that say what the case wants."""
import collections
import socket
import time

import pytest

from lib import balancer
from lib.listener import Listener
from lib.process import eventually

pytestmark = pytest.mark.together

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = bytes.fromhex("00000c 04 00 00000000 0003 00000064 0004 0000ffff")
GRANT = bytes.fromhex("000004 08 00 00000000 00008000")
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"


class SpeaksFirst(Listener):
    """Says `greeting` to each client, and takes whatever it is sent."""

    def __init__(self, place, port, greeting):
        self.greeting = greeting
        self.taken = 0
        super().__init__(place, port)

    def serve(self, sock):
        with sock:
            sock.sendall(self.greeting)
            while data := sock.recv(65536):
                self.taken += len(data)


class BehindPreamble(Listener):
    """Takes a PROXY protocol preamble off, and says its SETTINGS then, or with the client's first bytes."""

    def __init__(self, place, port, greets):
        self.greets = greets
        self.taken, self.introduced = 0, 0
        super().__init__(place, port)

    def serve(self, sock):
        with sock:
            balancer.read(sock)
            self.introduced += 1
            if self.greets:
                sock.sendall(SETTINGS)
            while data := sock.recv(65536):
                if not self.taken and not self.greets:
                    sock.sendall(SETTINGS)
                self.taken += len(data)


class Upgrades(Listener):
    """Counts requests by client. Of HTTP/2 it knows frames alone, and answers nothing."""

    def __init__(self, place, port, refuses):
        self.refuses = refuses  # addresses of clients for whom it knows no HTTP/2
        self.served = collections.Counter()
        super().__init__(place, port)

    def serve(self, sock):
        client = sock.getpeername()[0]
        with sock, sock.makefile("rb") as stream:
            try:
                self.requests(client, sock, stream)
            except OSError:
                pass

    def requests(self, client, sock, stream):
        while stream.readline():
            fields = {}
            while field := stream.readline().strip():
                name, value = field.lower().split(b": ")
                fields[name] = value
            stream.read(int(fields.get(b"content-length", 0)))
            self.served[client] += 1
            if b"upgrade" in fields and client not in self.refuses:
                sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n" + SETTINGS)
                self.frames(client, stream)
                return
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    def frames(self, client, stream):
        assert stream.read(24) == PREFACE
        while header := stream.read(9):
            stream.read(int.from_bytes(header[:3], "big"))
            self.served[client] += header[3] == 1


def behind_agent(world, kind, *arguments):
    """A server of this kind, and the site and the place that it has."""
    place = world.loopback()
    site = world.site(place)
    site.server.port = world.port()
    server = kind(place, site.server.port, *arguments)
    world.at_end(server.listener.close)
    return place, site, server


def connection(world, place, port, source=""):
    with place.client_ns.entered():
        sock = socket.create_connection((place.address, port), timeout=10, source_address=(source, 0))
    world.at_end(sock.close)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


# What the server says, what its client does then, the reason, and what 20 crumbs behind that cost.
CASES = {
    "http2": (SETTINGS, PREFACE + SETTINGS, "http2", 0),
    "request": (SETTINGS, GET, "http2", 20),
    "preface_behind_a_request": (SETTINGS, GET + PREFACE, "http2", 20),
    "another_frame": (GRANT, PREFACE + SETTINGS, "bad_response", 20),
    "answer": (TIMEOUT, PREFACE + SETTINGS, "bad_response", 20),
}


@pytest.mark.parametrize("hold", ["drop", "auto"])
@pytest.mark.parametrize("case", CASES)
def test_server_speaks_first(world, case, hold):
    """It is HTTP/2 if both say so; else each packet may be a request, and costs a token."""
    greeting, begins, reason, price = CASES[case]
    place, site, server = behind_agent(world, SpeaksFirst, greeting)
    site.attach("--hold", hold)
    site.limit("user", burst=1000)
    sock = connection(world, place, site.server.port)
    assert sock.recv(len(greeting)) == greeting
    assert site.unread() == {reason: 1}

    def say(data):
        wanted = server.taken + len(data)
        sock.sendall(data)
        eventually(lambda: server.taken == wanted, "the server has it")

    say(begins)
    before = site.limit_of("user")["admitted"]
    for _ in range(20):
        say(GRANT)
    assert site.limit_of("user")["admitted"] - before == price


# What comes behind the preamble, and what 20 crumbs behind that cost.
INTRODUCED = {"preface": ([PREFACE + SETTINGS], 0), "blank_line": ([b"\r\n", PREFACE + SETTINGS], 20)}
PREAMBLES = {"line": balancer.line("192.0.2.1"), "binary": balancer.binary("192.0.2.1", more=b"\x04\0\x03abc"),
             "unknown": b"PROXY UNKNOWN\r\n", "local": balancer.SIGNATURE + b"\x20\0\0\0"}


@pytest.mark.parametrize("hold", ["drop", "auto"])
@pytest.mark.parametrize("greets", [True, False])
@pytest.mark.parametrize("begins", INTRODUCED)
def test_behind_a_preamble(world, begins, greets, hold):
    """The preamble is in a packet of its own: what follows it begins the client's stream all the same."""
    parts, price = INTRODUCED[begins]
    place, site, server = behind_agent(world, BehindPreamble, greets)
    site.attach("--hold", hold, "--proxy-protocol", place.client_address)
    site.limit("user", burst=1000)
    for n, preamble in enumerate(PREAMBLES.values(), 1):
        sock = connection(world, place, site.server.port)

        def say(data):
            wanted = server.taken + len(data)
            sock.sendall(data)
            eventually(lambda: server.taken == wanted, "the server has it")

        server.taken = 0
        sock.sendall(preamble)
        eventually(lambda: server.introduced == n, "the server has the preamble")
        if greets:
            assert sock.recv(len(SETTINGS)) == SETTINGS
        for part in parts:
            say(part)
        if not greets:
            assert sock.recv(len(SETTINGS)) == SETTINGS
        before = site.limit_of("user")["admitted"]
        for _ in range(20):
            say(GRANT)
        assert site.limit_of("user")["admitted"] - before == price


UPGRADE = b"Host: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
ASKS = {
    "get": b"GET /first HTTP/1.1\r\n" + UPGRADE + b"\r\n",
    "post": b"POST /first HTTP/1.1\r\n" + UPGRADE + b"Content-Length: 5\r\n\r\nhello",
}
REQUEST = bytes.fromhex("000010 01 05 000000") + b"%c" + bytes(16)
FEW, MANY = 5, 8


def upgrade(sock, ask, how):
    """Asks for HTTP/2, and then by it for more than a limit allows; how: after the server's word, or before it."""
    parts = [ask, PREFACE + SETTINGS, *(REQUEST % (3 + 2 * i) for i in range(MANY))]
    for part in [b"".join(parts)] if how == "at_once" else parts:
        sock.sendall(part)
        if how == "waits" and part == ask and not sock.recv(65536).startswith(b"HTTP/1.1 101"):
            return
        time.sleep(0.01)


@pytest.mark.parametrize("hold", ["drop", "auto"])
def test_upgrade(world, hold):
    """The request that asks costs a token, the preface three, what follows one a packet: also where the server takes that for HTTP/1."""
    cases = [(how, ask, takes) for how in ("waits", "goes_on", "at_once") for ask in ASKS for takes in (True, False)]
    clients = {f"127.0.0.{n}": case for n, case in enumerate(cases, 2)}
    place, site, server = behind_agent(world, Upgrades, {client for client, case in clients.items() if not case[2]})
    site.attach("--hold", hold)
    site.limit("user", burst=FEW)
    for client, (how, ask, takes) in clients.items():
        upgrade(connection(world, place, site.server.port, client), ASKS[ask], how)
    least = {client: 2 if how == "waits" and takes else 1 for client, (how, ask, takes) in clients.items()}
    eventually(lambda: all(server.served[client] >= n for client, n in least.items()), "each is served")
    time.sleep(0.1)
    for client, (how, ask, takes) in clients.items():
        if not (takes and how == "at_once"):  # an estimate: requests in one packet
            assert 1 <= server.served[client] <= FEW, (how, ask, takes)
        if how == "waits":
            assert server.served[client] == (2 if takes else 1)


def frame(kind, flags, payload=b""):
    """Of stream 1."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags, 0, 0, 0, 1]) + payload


HEADERS, PRIORITY, RESET, CONTINUATION = 1, 2, 3, 9
FIELDS = bytes.fromhex("82 86 84 01 01 78")
ASKED_AND_RESET = frame(HEADERS, 5, FIELDS) + frame(RESET, 0, bytes([0, 0, 0, 8]))
# Packets, and what they cost: one token for each of more than 13 bytes, and one more for each further KiB.
ODD_FRAMES = {
    "continuations": ([frame(HEADERS, 1, FIELDS)] + 39 * [frame(CONTINUATION, 0)] + [frame(CONTINUATION, 4)], 1),
    "fields_in_continuations": ([frame(HEADERS, 1)] + [frame(CONTINUATION, 0, FIELDS[i:i + 1]) for i in range(6)], 0),
    "a_byte_a_packet": ([bytes([byte]) for byte in frame(HEADERS, 5, FIELDS)], 0),
    "padded": (5 * [frame(HEADERS, 13, bytes([200]) + FIELDS + bytes(200))], 5),
    "with_priority": (5 * [frame(HEADERS, 37, bytes(5) + FIELDS)], 5),
    "priorities": (5 * [frame(PRIORITY, 0, bytes(5))], 5),
    "reset_at_once": (5 * [ASKED_AND_RESET], 5),
    "many_reset_at_once": (2 * [100 * ASKED_AND_RESET], 2 * 3),
}


@pytest.mark.parametrize("case", ODD_FRAMES)
def test_odd_frames(world, case):
    """Whatever their kinds, packets cost what their lengths say, and those over the limit come when it allows them."""
    packets, price = ODD_FRAMES[case]
    place, site, server = behind_agent(world, SpeaksFirst, SETTINGS)
    site.attach("--hold", "drop")
    site.limit("user", burst=1 + price)  # the preface costs one
    sock = connection(world, place, site.server.port)
    assert sock.recv(len(SETTINGS)) == SETTINGS
    sent = 0
    for packet in [PREFACE + SETTINGS, *packets]:
        sock.sendall(packet)
        sent += len(packet)
        eventually(lambda: server.taken == sent, "the server has it")
    over = frame(PRIORITY, 0, bytes(5))
    sock.sendall(over)
    eventually(lambda: site.packets("held_record") >= 1, "the next one is over the limit")
    assert server.taken == sent
    site.limit("user", qps=1000, burst=1000)
    eventually(lambda: server.taken == sent + len(over), "it comes")
    assert site.unread() == {"http2": 1}
