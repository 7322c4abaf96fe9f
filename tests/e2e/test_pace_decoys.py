# SPDX-License-Identifier: GPL-2.0
"""What has paid and waits may be lost, or be overtaken: what comes to the server in its place has to pay itself."""
import contextlib
import struct
import time

import pytest

from lib.listener import Listener
from lib.loss import Loss
from lib.raw import RawClient, RawClient6
from test_decoys import DECOYS
from test_hostile import another_mac, get

pytestmark = pytest.mark.together

QPS, BURST = 1, 1
REQUESTS = 30
MANY = get("many") * REQUESTS
PLAIN = b"x" * len(MANY)
FLOW_PACKETS = 128  # that wait of one connection (user/sys/pace.c)


class Silent(Listener):
    """Goes on behind the preface of HTTP/2, and answers nothing: for all that is known it may be a server of HTTP/2."""

    def __init__(self, world, place, port):
        self.requests = 0
        self.port = port
        super().__init__(place, port)
        world.at_end(self.listener.close)

    def serve(self, sock):
        with contextlib.suppress(OSError), sock, sock.makefile("rb") as stream:
            while line := stream.readline():
                self.requests += line.startswith(b"GET ")

    def served(self):
        return self.requests


class Attack:
    def __init__(self, world, client_of, family, server_of=None):
        place = world.veth(family)
        server = server_of(world, place, world.port()) if server_of else world.echo(place)
        self.site = world.site(place, server)
        self.site.attach()
        hold = self.site.status()["hold"]
        if hold["mode"] != "pace":
            pytest.skip(hold["no_pace"])
        self.client = client_of(self.site.place, self.site.server.port)
        world.at_end(self.client.close)
        self.site.limit("user", qps=QPS, burst=BURST)
        self.began = time.monotonic()

    def opaque(self, decoy="tls"):
        """It cannot be read from here on, and its server has got nothing."""
        self.client.send(DECOYS[decoy], spoil=another_mac)
        time.sleep(0.05)

    def wait(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.client.receive()
            time.sleep(0.01)

    def replace(self, at):
        """Other bytes in the place of what is there at `at`, and more behind them."""
        self.client.next = at
        for _ in range(3):
            self.client.insist(MANY, times=2)

    def check(self):
        """One packet may owe what it costs; nothing passes while that is owed."""
        self.wait(1)
        served = self.site.server.served()
        assert served <= BURST + QPS * (time.monotonic() - self.began) + REQUESTS


def flow_label(label):
    def spoil(frame):
        frame[14:18] = struct.pack("!I", 6 << 28 | label)
    return spoil


def test_overtaken(world):
    """fq would tell the flows of IPv6 apart by their labels."""
    attack = Attack(world, RawClient6, 6)
    client = attack.client
    attack.opaque()
    client.insist(get("first"), times=1)
    for _ in range(3):
        client.send(PLAIN, spoil=flow_label(1))
        for label in range(2, 40):
            client.send(MANY, spoil=flow_label(label))
        attack.wait(1.5)
    attack.check()


@pytest.mark.parametrize("kind", ["plain", "tls"])
def test_dropped_by_a_full_queue(world, kind):
    attack = Attack(world, RawClient, 4)
    client = attack.client
    attack.opaque()
    assert client.insist(get("first"), times=3)
    for _ in range(FLOW_PACKETS + 2):
        client.send(get("second"))
    at = client.next + len(get("second"))
    client.send(PLAIN if kind == "plain" else DECOYS["tls"], at=at)
    attack.wait(1.5)
    attack.replace(at)
    attack.check()


@pytest.mark.parametrize("kind", ["plain", "tls", "http2"])
def test_dropped_behind_ingress(world, kind):
    attack = Attack(world, RawClient, 4)
    client = attack.client
    attack.opaque("http2" if kind == "http2" else "tls")
    if kind == "plain":
        assert client.insist(get("first"), times=3)
    loss = Loss(attack.site.place.server_ns)
    for _ in range(3):
        loss.drop("input", "meta length > 100")
        client.send(PLAIN if kind == "plain" else DECOYS[kind])
        attack.wait(1.2)
        attack.replace(client.next)
    attack.check()


def test_resent_while_it_waits(world):
    """Where HTTP/2 has begun for all that the client says, and is lost behind ingress."""
    attack = Attack(world, RawClient, 4, Silent)
    client = attack.client
    assert client.insist(DECOYS["http2"][:24])
    attack.wait(4)  # what that owes
    loss = Loss(attack.site.place.server_ns)
    for _ in range(4):
        client.send(b"x" * 20)  # takes the token, or waits for one
        at = client.next + 20
        loss.drop("input", "meta length > 100")
        client.send(PLAIN, at=at)
        client.send(MANY, at=at)
        attack.wait(2.5)
        client.next = client.acked
    attack.check()
    assert attack.site.packets("paced") > 0
