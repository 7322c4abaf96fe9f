# SPDX-License-Identifier: GPL-2.0
"""CONNECT is a request like any other; what comes behind it cannot be read, and is held."""
import contextlib
import re
import socket
import threading

import pytest

from lib.process import eventually

pytestmark = pytest.mark.together

BURST = 3
TARGET = "example.org:443"


def connect(client):
    client.send(client.head(TARGET, "CONNECT"))
    return client.check(client.read(), TARGET)


def test_over_the_limit(site):
    site.limit("user", burst=1)
    client = site.client("alice")
    assert client.get("/first") == 200
    assert connect(client) == 429
    assert site.client("bob").get("/first") == 200
    assert client.get("/second") == 429  # on the same connection
    site.check(passed=2, shed=2)
    assert site.unread() == {}


def test_is_charged_once(world):
    """By the one who asks; what follows, by its address."""
    site = world.site()
    site.attach("--hold", "drop")
    site.limit("user", "alice", burst=2)
    client = site.client("alice")
    assert connect(client) == 200
    eventually(lambda: site.unread() == {"connect": 1}, "the connection is not read any more")
    assert site.status()["records_passed"] == 0
    assert site.client("alice").drive(2) == [200, 429]
    site.check(passed=2, shed=1)


def test_what_follows_pays_for_each_request(world):
    site = world.site()
    site.attach("--hold", "drop")
    site.limit("user", site.place.client_address, burst=BURST)
    client = site.client("alice")
    assert connect(client) == 200
    client.send(client.head("/many") * 10)  # the server takes a CONNECT for nothing special
    for _ in range(10):
        assert client.check(client.read(), "/many", last=False) == 200
    client.ask("/one-more")
    eventually(lambda: site.packets("held_record") >= 2, "it was withheld, and came again")
    assert site.server.served() == 11


def test_trace(site):
    trace = site.world.trace()
    connect(site.client("alice"))
    (record,) = trace.end()
    assert (record["method"], record["target"], record["verb"]) == ("CONNECT", TARGET, "connect")
    assert (record["user"], record["decision"]) == ("alice", "passed")


class Hasty:
    """As Perl's HTTP::Daemon, it ends a head at any line that is no field, and has one request after the other served."""

    def __init__(self, place, port):
        self.served, self.port = 0, port
        with place.server_ns.entered():
            self.listener = socket.create_server((place.address, port))
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                with sock, sock.makefile("rb") as lines, contextlib.suppress(OSError):
                    while lines.readline():
                        while re.match(rb"[^:\s]+:", lines.readline()):
                            pass
                        self.served += 1
                        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(5)


@pytest.mark.parametrize("begun", [b"CONNECT / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01"], ids=["connect", "tls"])
def test_heads_without_an_empty_line(world, begun):
    place = world.veth()
    server = Hasty(place, world.port())
    world.at_end(server.close)
    site = world.site(place, server)
    site.attach("--hold", "drop")
    site.limit("user", burst=BURST)
    client = site.client("alice")
    client.send(begun)
    client.settle()
    client.send(b"GET / HTTP/1.1\r\n:\r\n" * 10)
    eventually(lambda: server.served >= 10, "what one token lets in is let in")
    client.send(b"GET / HTTP/1.1\r\n:\r\n" * 10)
    eventually(lambda: site.packets("held_record") >= 2, "it was withheld, and came again")
    assert server.served == 10 + begun.startswith(b"CONNECT")
