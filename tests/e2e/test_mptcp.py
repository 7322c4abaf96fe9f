# SPDX-License-Identifier: GPL-2.0
"""Servers that take MPTCP, as Go's have since 1.24: new connections are plain TCP, and those from before are held."""
import socket

import pytest

from lib.process import eventually
from lib.raw import ACK, tcp_segment
from lib.server import EchoServer

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
