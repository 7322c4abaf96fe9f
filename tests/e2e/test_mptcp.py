# SPDX-License-Identifier: GPL-2.0
"""Servers that take MPTCP, as Go's have since 1.24: new connections are plain TCP, and limited; those from before are held."""
import os
import socket

import pytest

from lib.process import eventually
from lib.raw import ACK, tcp_segment
from lib.server import EchoServer
from test_admission import NO_PROXY, RATE, Half, Silent, attempts, connect, connects, limit, several, taken

pytestmark = pytest.mark.together

MPTCP = 262  # socket.IPPROTO_MPTCP has it since Python 3.10
TCP_IS_MPTCP = 43


class MptcpServer(EchoServer):
    def listen(self, address, port):
        try:
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
        except OSError as why:
            pytest.skip(f"this kernel has no MPTCP: {why}")
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(1024)
        return listener


@pytest.fixture
def site(world):
    place = world.veth()
    server = MptcpServer(place.server_ns, place.address, world.port())
    world.at_end(server.close)
    return world.site(place, server)


def is_mptcp(client):
    return bool(client.socket.getsockopt(socket.IPPROTO_TCP, TCP_IS_MPTCP))


def send_plain(site, client):
    """A segment of the connection without any option. The server's socket has no use for it."""
    ports = client.socket.getsockname()[1], site.server.port
    ends = [socket.inet_aton(address) for address in (site.place.client_address, site.place.address)]
    with site.place.client_ns.entered(), socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP) as raw:
        raw.sendto(tcp_segment(ends, ports, 1, 1, ACK, b"", b""), (site.place.address, 0))


def test_new_connections_are_plain_tcp(site):
    site.attach()
    site.limit("user", burst=2)
    client = site.client(protocol=MPTCP)
    assert client.drive(5) == [200, 200, 429, 429, 429]
    assert not is_mptcp(client)
    assert site.packets("mptcp_removed") >= 1
    site.check(passed=2, shed=3)


def test_plain_request_that_ends_the_handshake(site):
    """Of the kernel's request for a connection no program can be sure by then, as it is MPTCP's: the hold meets the socket first."""
    site.attach()
    site.limit("user", burst=2)
    client = site.client(prepare=lambda sock: sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0))
    assert client.drive(5) == [200, 200, 429, 429, 429]
    assert site.unread() == {"mid_stream": 1}


@pytest.mark.parametrize("first", ["of MPTCP", "plain"])
@pytest.mark.parametrize("asked", [False, True])
def test_connections_from_before(site, first, asked):
    """Whatever its first packet says that is seen: the socket knows."""
    client = site.client(protocol=MPTCP)
    assert is_mptcp(client)
    if asked:
        assert client.get("/before") == 200
    site.attach()
    site.limit("user", burst=2)
    if first == "plain":
        send_plain(site, client)
        eventually(lambda: site.unread() == {"mptcp": 1}, "it is seen")
    assert client.drive(2) == [200] * 2
    client.ask("/held")
    eventually(lambda: site.packets("held_record") >= 2, "it is held")
    assert site.unread() == {"mptcp": 1}
    assert site.server.served() == 2 + asked


@pytest.fixture
def counted(site, world):
    """A site that limits connections. All is on one CPU, whose next packet says what became of the one before."""
    cpus = os.sched_getaffinity(0)
    world.at_end(os.sched_setaffinity, 0, cpus)
    os.sched_setaffinity(0, {min(cpus)})
    site.attach(*NO_PROXY)
    return site


# No program can read the kernel's request for a connection of such a listener: the hold sees what comes of it.
@pytest.mark.parametrize("n", [2, 3, 4, 9])
def test_rate_of_connections(counted, n):
    limit(counted, "--key", "source", *RATE, "--burst", 3)
    assert connects(counted, n) == min(n, 3)
    assert attempts(counted)["admitted"] == min(n, 3)
    assert ("dropped" in attempts(counted)) == (n > 3)
    assert counted.limit_of("conns")["admitted"] == min(n, 3)


def test_connections_by_one_interface(site):
    site.attach(*NO_PROXY, "--interface", "eth0")
    limit(site, "--key", "source", *RATE, "--burst", 3)
    assert connects(site, 5) == 3


def test_open_connections(counted):
    limit(counted, "--key", "source", "--open", 2)
    first, second = connect(counted), connect(counted)
    assert connect(counted) == "timeout"
    assert taken(counted) == 2
    first.close()
    eventually(lambda: taken(counted) == 1, "its seat is free")
    assert connects(counted, 2) == 1
    second.close()
    assert counted.limit_of("conns")["highest"] == 2


@pytest.mark.parametrize("n", [2, 3, 4, 20])
def test_handshakes_side_by_side(counted, n):
    """Each of them was answered before one was complete."""
    limit(counted, "--key", "source", *RATE, "--burst", 3)
    halves = several(Half, counted, n)
    for half in halves:
        half.complete()
    eventually(lambda: sum(attempts(counted).values()) >= n - 1, "all but the last, which the next packet settles, are counted")
    eventually(lambda: len(counted.server.connections) == min(n, 3), "the server has no others")


def test_request_that_ends_the_handshake(counted):
    """It is one of a connection that is admitted."""
    limit(counted, "--key", "source", *RATE, "--burst", 2)
    for _ in range(2):
        client = counted.client(prepare=lambda sock: sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0))
        assert client.drive(2) == [200] * 2
    assert connects(counted, 1) == 0


def test_acknowledgements_of_nothing(counted):
    """Who sends them may not be whom he says."""
    limit(counted, "--key", "source", *RATE, "--burst", 1)
    limit(counted, "--key", "source", "--open", 1, name="open")
    (silent,) = several(Silent, counted, 1)
    for n in range(20):
        silent.send(at=silent.next + 1, ack=n * 12345, flags=ACK)
    assert connects(counted, 2) == 1
    assert attempts(counted)["admitted"] == 1
    assert (taken(counted, "open"), counted.limit_of("conns")["admitted"]) == (1, 1)
