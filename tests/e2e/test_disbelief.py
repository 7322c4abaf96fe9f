# SPDX-License-Identifier: GPL-2.0
"""A client that begins like one of TLS, or of HTTP/2, at a server of HTTP/1 that takes that for requests: many take any method."""
import collections
import contextlib
import socket

import pytest

from lib.listener import Listener
from lib.process import eventually

pytestmark = pytest.mark.together

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
BURST = 5

# tls: to those who know it, a record of a handshake, of 18,245 bytes.
BEGINNINGS = {"tls": b"\x16\x03\x01" + GET, "http2": PREFACE}
HEADS = {"tls": 1, "http2": 2}


class Lenient(Listener):
    """Serves whatever head has a target, if its method is as strange as can be, and passes over others."""

    def __init__(self, place, port):
        self.served = collections.Counter()  # by the client's port
        self.heads = collections.Counter()
        super().__init__(place, port)

    def serve(self, sock):
        with contextlib.suppress(OSError), sock, sock.makefile("rb") as stream:
            port = sock.getpeername()[1]
            while line := stream.readline():
                while stream.readline().strip():
                    pass
                self.heads[port] += 1
                if len(line.split()) == 3:
                    self.served[port] += 1
                    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


class Client:
    def __init__(self, world, place, server):
        with place.client_ns.entered():
            self.socket = socket.create_connection(server.listener.getsockname(), timeout=10)
        world.at_end(self.socket.close)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.server, self.port = server, self.socket.getsockname()[1]

    def say(self, *parts):
        for part in parts:
            self.socket.sendall(part)

    def served(self):
        return self.server.served[self.port]

    def awaits(self, heads):
        eventually(lambda: self.server.heads[self.port] == heads, f"the server has had {heads} heads")


@pytest.fixture(params=["drop", "auto"])
def site(world, request):
    place, port = world.loopback(), world.port()
    server = Lenient(place, port)
    server.port = port
    world.at_end(server.listener.close)
    site = world.site(place, server)
    site.attach("--hold", request.param)
    site.limit("user", burst=BURST)
    return site


def is_held(site):
    eventually(lambda: site.packets("held_record") > 0, "something is held")


@pytest.mark.parametrize("begins", BEGINNINGS)
def test_requests_behind_it_are_charged(world, site, begins):
    client = Client(world, site.place, site.server)
    client.say(BEGINNINGS[begins])
    client.awaits(HEADS[begins])
    for _ in range(2 * BURST):
        client.say(GET)
    is_held(site)
    assert client.served() <= BURST


@pytest.mark.parametrize("begins", BEGINNINGS)
def test_requests_in_one_packet_with_it_are_charged(world, site, begins):
    """One token lets a whole packet in, and the rest is owed."""
    client = Client(world, site.place, site.server)
    client.say(BEGINNINGS[begins] + 2 * BURST * GET)
    client.awaits(HEADS[begins] + 2 * BURST)
    client.say(GET)
    is_held(site)
    assert client.served() == 2 * BURST + 1


def test_crumbs_behind_the_preface_are_charged(world, site):
    """Short packets are cheap where they are HTTP/2's."""
    client = Client(world, site.place, site.server)
    client.say(PREFACE)
    client.awaits(2)
    for _ in range(2 * BURST):
        client.say(*(GET[at:at + 9] for at in range(0, len(GET), 9)))
    is_held(site)
    assert client.served() <= BURST
