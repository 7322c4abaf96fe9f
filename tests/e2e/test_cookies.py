# SPDX-License-Identifier: GPL-2.0
"""
An ACK that answers a SYN cookie makes a connection by itself, and any number of them, one after the other: with the numbers
of the one before, or others that fit as well. What comes by the new one is not what was read of the old one.
"""
import time

import pytest

from lib.batch import Batches
from lib.process import eventually
from lib.raw import ACK, PSH, RST, RawClient

pytestmark = pytest.mark.together

BURST = 2
UPGRADE = b"GET /?upgrade=1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"


def get(path):
    return b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode()


def post(length):
    """The head of a request with a long body, of so many bytes."""
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\nX: %s\r\n\r\n"
    return head % (b"x" * (length + 2 - len(head)))


@pytest.fixture(params=["veth", pytest.param("veth in batches", marks=pytest.mark.alters)])
def cookies(world, request):
    site = world.site(world.veth())
    world.setting(site.place.server_ns, "net.ipv4.tcp_syncookies", 2)
    if request.param == "veth in batches":
        Batches(site.place)
    site.attach()
    site.limit("user", burst=BURST)
    client = RawClient(site.place, site.server.port)
    world.at_end(client.close)
    return site, client


class Replay:
    """The connection's own numbers at its beginning."""

    def __init__(self, site, client):
        self.site, self.client = site, client
        self.next, self.peer, self.echoed = client.next, client.peer, client.echoed

    def reset(self, by=0, await_end=True):
        """Ends the connection; the client is ready to set up another one, whose numbers are all greater by this."""
        client = self.client
        client.send(flags=RST | ACK)
        client.next, client.peer, client.acked = self.next + by, self.peer + by, self.next + by
        client.echoed = self.echoed
        if await_end:
            eventually(lambda: all(connection.ending for connection in self.site.server.connections), "its socket is gone")

    def again(self, by=0):
        known = len(self.site.server.connections)
        self.reset(by)
        self.client.send()
        eventually(lambda: len(self.site.server.connections) > known, "there is another connection")

    def requests(self, n=4):
        for i in range(n):
            self.client.insist(get(f"{i}"), times=2)


def check(site, unserved=0):
    """All that the server has got is within the limit, with those that it does not log."""
    time.sleep(0.3)
    assert site.server.served() + unserved <= BURST, site.server.targets()
    assert 0 < site.weir.counts()["passed"] <= BURST


def test_the_same_numbers(cookies):
    site, client = cookies
    replay = Replay(site, client)
    assert client.insist(post(200))
    replay.again()
    replay.requests()
    check(site, unserved=1)


def test_at_once(cookies):
    """RST, ACK and data one right after the other: the socket has not seen the first when the last is looked at."""
    site, client = cookies
    replay = Replay(site, client)
    assert client.insist(post(200))
    for i in range(10):
        replay.reset(await_end=False)
        client.send()
        client.insist(get(f"{i}"), times=1)
    check(site, unserved=1)


@pytest.mark.parametrize("translated", [False, True])
def test_data_with_the_cookie(cookies, translated):
    site, client = cookies
    replay = Replay(site, client)
    assert client.insist(post(200) if not translated else get("first"))
    if translated:
        assert client.insist(get("second"))
        assert client.insist(get("refused"))
    for i in range(4):
        replay.reset(await_end=False)  # where data came with a cookie, the socket takes the RST for a wrong one
        time.sleep(0.05)
        client.send(get(f"{i}"), flags=ACK | PSH)
        time.sleep(0.1)
        client.receive()
        replay.requests(1)
    check(site, unserved=not translated)


def test_shifted_into_a_body(cookies):
    """The new connection goes on, by its numbers, exactly where the old one was: in the middle of a long body."""
    site, client = cookies
    replay = Replay(site, client)
    assert client.insist(get("first?size=200"))
    eventually(lambda: client.receive() or len(client.stream) > 200, "the answer is there")
    by = client.peer - replay.peer
    assert client.insist(post(by - (client.next - replay.next)))
    assert client.next - replay.next == by
    replay.again(by)
    replay.requests()
    check(site, unserved=1)


def test_translated(cookies):
    """What was refused is cut out of the old connection's stream; its beginning passes for what the server has."""
    site, client = cookies
    replay = Replay(site, client)
    assert client.insist(get("first"))
    assert client.insist(get("second"))
    assert client.insist(get("refused"))
    replay.again()
    replay.requests()
    assert site.packets("translated")
    check(site)


def test_opaque(cookies):
    """What was held and paid for of the old connection does not pay for the new one."""
    site, client = cookies
    replay = Replay(site, client)
    assert client.insist(UPGRADE)
    eventually(lambda: client.receive() or client.stream.startswith(b"HTTP/1.1 101"), "it is another protocol now")
    assert client.insist(b"x" * 1000)
    replay.again()
    replay.requests()
    check(site, unserved=1)


def test_limits_on_connections_are_asked(cookies):
    """Whatever the table still knows of the connection before: its numbers are translated for a while."""
    site, client = cookies
    replay = Replay(site, client)
    replay.requests(BURST + 1)
    site.weir("limit", "set", "conns", "--key", "total", "--connections", "--qps", 0, "--burst", 0)
    known = len(site.server.connections)
    for n in range(1, 4):
        replay.reset()
        client.send()
        eventually(lambda: site.status()["connection_attempts"].get("dropped") == n, "it is refused")
    client.send(get("unasked"), flags=ACK | PSH)
    time.sleep(0.3)
    assert len(site.server.connections) == known
    site.weir("limit", "delete", "conns")
    replay.again()


class Swapped:
    """One connection that limits on connections have admitted, no other one being left, and how batches may swap it for another."""

    def __init__(self, world):
        self.site = site = world.site(world.veth())
        world.setting(site.place.server_ns, "net.ipv4.tcp_syncookies", 2)
        site.attach("--trusted-proxy", "192.0.2.1")
        site.weir("limit", "set", "open", "--key", "source", "--open", 1)
        self.limit_rate()
        self.batches = Batches(site.place)
        self.client = RawClient(site.place, site.server.port)
        world.at_end(self.client.close)
        eventually(lambda: len(site.server.connections) == 1, "it is there")

    def swap(self, replay, by=0, data=b""):
        with self.batches.batch():
            replay.reset(by, await_end=False)
            self.client.send(data)
        time.sleep(0.1)

    def limit_rate(self):
        self.site.weir("limit", "set", "rate", "--key", "source", "--connections", "--qps", 0, "--burst", 1)

    def check(self, others=0):
        assert len(self.site.server.connections) == 1 + others
        assert self.site.limit_of("rate")["admitted"] == 1
        eventually(lambda: self.site.limit_of("open")["in_flight"] == 0, "its seat is free")


@pytest.fixture
def swapped(world):
    return Swapped(world)


@pytest.mark.alters
@pytest.mark.parametrize("data", [b"", get("x")], ids=["bare", "with data"])
def test_swapped_before_it_said_anything(swapped, data):
    replay = Replay(swapped.site, swapped.client)
    for _ in range(3):
        swapped.swap(replay, data=data)
    swapped.check()


@pytest.mark.alters
@pytest.mark.parametrize("by", [0, 100])
def test_swapped_in_the_middle(swapped, by):
    """With the numbers of its beginning, or with a cookie of its own, which stands in what both sides have said."""
    replay = Replay(swapped.site, swapped.client)
    assert swapped.client.insist(post(200))
    for _ in range(3):
        swapped.swap(replay, by)
    swapped.check()


@pytest.mark.alters
@pytest.mark.parametrize("by", [0, 100])
def test_swapped_as_it_begins(swapped, by):
    """ACK, RST, ACK: none has met a socket when the last one comes."""
    site, client = swapped.site, swapped.client
    replay = Replay(site, client)
    replay.reset()
    eventually(lambda: site.limit_of("open")["in_flight"] == 0, "its seat is free")
    site.weir("limit", "delete", "rate")
    swapped.limit_rate()
    with swapped.batches.batch():
        client.send()
        replay.reset(by, await_end=False)
        client.send()
    time.sleep(0.1)
    swapped.check(others=1)


@pytest.mark.alters
def test_swapped_beside_a_connection_from_port_0(swapped):
    """The listener is not looked for by a port that some client may have."""
    site = swapped.site
    site.weir("limit", "delete", "rate")
    site.weir("limit", "delete", "open")
    other = RawClient(site.place, site.server.port, source_port=0)
    site.world.at_end(other.close)
    site.weir("limit", "set", "rate", "--key", "source", "--connections", "--qps", 0, "--burst", 0)
    for n in range(1, 4):
        swapped.swap(Replay(site, swapped.client))
        eventually(lambda: site.packets("unacceptable") + site.status()["connection_attempts"].get("dropped", 0) == n,
                   "it does not come in")
