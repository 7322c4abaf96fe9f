# SPDX-License-Identifier: GPL-2.0
"""Connections that the server's own host opens, from the very port where the server listens: they bring nobody's requests."""
import contextlib
import errno
import os
import socket
import struct
import threading
import time
import types

import pytest

from lib.process import eventually
from lib.raw import (ACK, NO_RESETS, RECEIVE_QUEUE, RST, SEND_QUEUE, SYN, TCP_QUEUE_SEQ, TCP_REPAIR, TCP_REPAIR_QUEUE,
                     TCP_TIMESTAMP, RawClient)
from lib.tun import Tunnel

pytestmark = pytest.mark.together

PORT = 9000
GREETING = b"220 ready\r\n\r\n"
GET = b"GET /r HTTP/1.1\r\nHost: x\r\n\r\n"
TEXT = b"HTTP/1.1 200 OK\r\n\r\nGET / HTTP/1.1\r\n\r\n" * 30


def reusable(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.settimeout(10)
    return sock


@contextlib.contextmanager
def peer(place, greeting):
    """A server elsewhere: it greets, and says everything again that it is told."""
    with place.client_ns.entered():
        listener = reusable(socket.socket(place.family))
    listener.bind((place.client_address, PORT))
    listener.listen()

    def serve():
        sock, _ = listener.accept()
        with sock:
            sock.sendall(greeting)
            while data := sock.recv(1 << 16):
                sock.sendall(data)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield
    thread.join(10)
    listener.close()
    assert not thread.is_alive()


def opened(site):
    """A socket of the server's host, bound to the server's port."""
    site.server.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    with site.place.server_ns.entered():
        sock = reusable(socket.socket(site.place.family))
    sock.bind((site.place.address, site.server.port))
    return sock


def received(sock, n):
    data = b""
    while len(data) < n:
        more = sock.recv(n - len(data))
        assert more, f"it ends after {data!r}"
        data += more
    return data


def exchange(site, greeting):
    """All that is said comes, both ways, and nothing of it was read."""
    with peer(site.place, greeting), opened(site) as sock:
        sock.connect((site.place.client_address, PORT))
        assert received(sock, len(greeting)) == greeting
        for _ in range(20):
            sock.sendall(TEXT)
            assert received(sock, len(TEXT)) == TEXT
    assert site.unread() == {}


@pytest.mark.parametrize("greeting", [GREETING, b""])
@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("kind", ["veth", "loopback"])
def test_connection_of_the_host(world, kind, family, greeting):
    site = world.site(world.place(kind, family))
    site.attach()
    site.limit("user", burst=0)
    site.limit("total", burst=0)
    exchange(site, greeting)
    assert site.client().get("/r") == 429
    site.check(passed=0, shed=1)


class HalfOpen(RawClient):
    """A client that has sent a SYN, and knows what came back. It ends no handshake by itself."""

    def handshake(self):
        self.receive()
        return self.peer


@pytest.fixture
def raw(world):
    """The server's host connects from the server's port to where a raw client is; nothing is allowed."""
    place = world.veth()
    place.client_ns.run("nft", "-f", "-", input=NO_RESETS)
    site = world.site(place)
    site.attach()
    site.limit("user", burst=0)
    yield site
    place.client_ns.run("nft", "delete", "table", "inet", "raw_client")


def connecting(site, port):
    sock = opened(site)
    sock.setblocking(False)
    assert sock.connect_ex((site.place.client_address, port)) == errno.EINPROGRESS
    return sock


def test_simultaneous_open(raw):
    with connecting(raw, 44444) as sock, contextlib.closing(HalfOpen(raw.place, raw.server.port, 44444)) as client:
        client.next += 1
        client.send()
        sock.setblocking(True)
        for _ in range(5):
            assert client.insist(TEXT)
            assert received(sock, len(TEXT)) == TEXT
    assert raw.unread() == {}
    assert raw.server.served() == 0


@pytest.mark.parametrize("cookies", [1, 2])
def test_client_behind_a_refused_connection(raw, world, cookies):
    """Of the same two ends: its handshake began before the host's own SYN, and goes on behind it where a cookie keeps it."""
    world.setting(raw.place.server_ns, "net.ipv4.tcp_syncookies", cookies)
    with contextlib.closing(HalfOpen(raw.place, raw.server.port, 44444)) as client:
        promised = client.peer
        client.send(at=client.next + 1, flags=RST)
        with connecting(raw, 44444) as sock:
            client.peer = 0
            eventually(client.handshake, "the host's SYN has come")
            client.send(flags=RST | ACK)
            eventually(lambda: sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED, "it is refused")
        client.peer = promised
        if cookies == 1:
            client.peer = 0
            client.next += 1000
            client.send(flags=SYN, tsval=client.clock())
            eventually(client.handshake, "the server answers")
        client.next += 1
        client.send()
        client.insist(GET)
        assert b"429" in client.stream
    assert raw.server.served() == 0


def test_device_without_programs(world):
    """Its socket tells: on a device without Ethernet frames nobody sees its SYN."""
    if not os.path.exists("/dev/net/tun"):
        pytest.skip("no /dev/net/tun here")
    tunnel = Tunnel(world.namespace("s"), world.namespace("c"))
    world.at_end(tunnel.close)
    site = world.site(tunnel.place)
    site.attach()
    site.limit("user", burst=0)
    exchange(site, GREETING)


TCP_REPAIR_OPTIONS, TCP_REPAIR_WINDOW, TCPOPT_MSS, TCPOPT_WINDOW, TCPOPT_SACK = 22, 29, 2, 3, 4


def restored(place, sock):
    """The same connection on another socket, as a checkpoint's."""
    here, there = sock.getsockname(), sock.getpeername()
    sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
    numbers = {}
    for queue in RECEIVE_QUEUE, SEND_QUEUE:
        sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_QUEUE, queue)
        numbers[queue] = sock.getsockopt(socket.IPPROTO_TCP, TCP_QUEUE_SEQ) & 0xffffffff
    window = sock.getsockopt(socket.IPPROTO_TCP, TCP_REPAIR_WINDOW, 20)
    clock = sock.getsockopt(socket.IPPROTO_TCP, TCP_TIMESTAMP)
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    scales, options = info[6], info[5]
    sock.close()
    with place.server_ns.entered():
        sock = socket.socket(place.family)
    sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
    sock.bind(here)
    for queue, number in numbers.items():
        sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_QUEUE, queue)
        sock.setsockopt(socket.IPPROTO_TCP, TCP_QUEUE_SEQ, struct.pack("I", number))
    sock.connect(there)
    wanted = [(TCPOPT_SACK, 0), (TCPOPT_WINDOW, scales & 15 | scales >> 4 << 16), (TCPOPT_MSS, 1448)]
    wanted += [(8, 0)] if options & 1 else []
    sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_OPTIONS, b"".join(struct.pack("II", *one) for one in wanted))
    sock.setsockopt(socket.IPPROTO_TCP, TCP_TIMESTAMP, clock)
    sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_WINDOW, window)
    sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 0)
    return sock


@pytest.mark.parametrize("begun", [b"", b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nbody"])
@pytest.mark.parametrize("burst", [0, 2])
def test_restored_connection(world, burst, begun):
    """The kernel says that the host has opened it. It has not: what comes are requests, also where a body might be under way."""
    place = world.veth()
    with place.server_ns.entered():
        listener = socket.create_server((place.address, world.port()))
    site = world.site(place, types.SimpleNamespace(port=listener.getsockname()[1]))
    site.attach()
    site.limit("user", burst=burst)
    with place.client_ns.entered(), socket.create_connection(listener.getsockname()) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock, _ = listener.accept()
        client.sendall(begun)
        assert received(sock, len(begun)) == begun
        with restored(place, sock) as server:
            server.settimeout(2)
            for _ in range(8):
                client.sendall(GET)
                time.sleep(0.05)
            got = b""
            with contextlib.suppress(TimeoutError):
                while data := server.recv(1 << 16):
                    got += data
    listener.close()
    assert got.count(GET) == burst
