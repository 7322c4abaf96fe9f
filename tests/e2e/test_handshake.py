# SPDX-License-Identifier: GPL-2.0
"""However a connection begins, its first requests are read."""
import socket
import struct
import time

import pytest

from lib.raw import ACK, SYN, RawClient

pytestmark = pytest.mark.together

BURST = 2
MANY = 30
# Server and client without cookies, and for every listener (Linux, ip-sysctl).
SERVER_FAST_OPEN, CLIENT_FAST_OPEN = 0x603, 0x5

FAST_OPEN = struct.pack("!BB", 34, 2)
EXPERIMENT = struct.pack("!BBH", 254, 4, 0xF989)
SYN_OPTIONS = {"none": b"", "fast_open": FAST_OPEN + b"\1\1", "experiment": EXPERIMENT, "twice": FAST_OPEN * 2,
               "both": EXPERIMENT + FAST_OPEN + b"\1\1"}


def get(path):
    return b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode()


class CrossingClient(RawClient):
    """Ends the handshake by a SYN-ACK with data: the server's socket stays in SYN_RECV, and waits for what comes next."""

    def handshake(self):
        self.receive()
        if not self.peer:
            return False
        self.send(b"x", flags=SYN | ACK)
        self.next += 1
        return True


@pytest.mark.parametrize("burst", [0, BURST])
def test_handshake_ended_by_a_syn_ack(world, burst):
    site = world.site(world.veth())
    site.attach()
    site.limit("user", burst=burst)
    client = CrossingClient(site.place, site.server.port)
    world.at_end(client.close)
    time.sleep(0.1)
    client.insist(get("many") * MANY, times=4)
    # The listener is woken by the next connection.
    assert site.client("another").get("/livez") == 200
    client.insist(get("many") * MANY, times=4)
    assert site.server.served() <= burst + 1
    assert site.weir.counts()["passed"] <= burst
    assert site.unread() == {}


@pytest.fixture
def fast(world):
    place = world.veth()
    world.setting(place.server_ns, "net.ipv4.tcp_fastopen", SERVER_FAST_OPEN)
    world.setting(place.client_ns, "net.ipv4.tcp_fastopen", CLIENT_FAST_OPEN)
    site = world.site(place)
    site.attach()
    site.limit("user", burst=0)
    return site


@pytest.mark.parametrize("options", SYN_OPTIONS)
def test_data_of_a_syn(fast, options):
    client = RawClient(fast.place, fast.server.port, syn_data=get("first"), syn_options=SYN_OPTIONS[options])
    fast.world.at_end(client.close)
    assert client.acked == client.next, "only the SYN is acknowledged"
    assert client.insist(get("first"))
    fast.check(passed=0, shed=1)
    assert fast.packets("syn_data") >= 1


def test_data_of_an_ordinary_clients_syn(fast):
    with fast.place.client_ns.entered():
        client = socket.socket()
    fast.world.at_end(client.close)
    client.settimeout(10)
    client.sendto(get("first"), socket.MSG_FASTOPEN, (fast.place.address, fast.server.port))
    assert client.recv(12) == b"HTTP/1.1 429"
    fast.check(passed=0, shed=1)
    assert fast.packets("syn_data") == 1
