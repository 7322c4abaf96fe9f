# SPDX-License-Identifier: GPL-2.0
"""HTTP/2 without TLS, by a server of a few lines that says what the case wants."""
import socket
import threading

import pytest

from lib.process import eventually

pytestmark = pytest.mark.together

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = bytes.fromhex("00000c 04 00 00000000 0003 00000064 0004 0000ffff")
GRANT = bytes.fromhex("000004 08 00 00000000 00008000")
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"


class SpeaksFirst:
    """Says `greeting` to each client, and takes whatever it is sent."""

    def __init__(self, place, port, greeting):
        self.greeting = greeting
        self.taken = 0
        with place.server_ns.entered():
            self.listener = socket.create_server((place.address, port))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.take, args=(sock,), daemon=True).start()

    def take(self, sock):
        with sock:
            sock.sendall(self.greeting)
            while data := sock.recv(65536):
                self.taken += len(data)


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
    place = world.loopback()
    site = world.site(place)
    site.server.port = world.port()
    server = SpeaksFirst(place, site.server.port, greeting)
    world.at_end(server.listener.close)
    site.attach("--hold", hold)
    site.limit("user", burst=1000)
    with place.client_ns.entered():
        sock = socket.create_connection((place.address, site.server.port), timeout=10)
    world.at_end(sock.close)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
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
