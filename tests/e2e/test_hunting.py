# SPDX-License-Identifier: GPL-2.0
"""A connection that is joined in mid-stream is limited from its first request on, though nothing on it is answered yet."""
import time
from pathlib import Path

import pytest

from lib.process import eventually
from lib.raw import RawClient

pytestmark = pytest.mark.together

BURST = 3

needs_hold = pytest.mark.skipif("cgroup2" not in Path("/proc/mounts").read_text(), reason="no cgroup2 is mounted")


@pytest.fixture(params=["loopback", "veth"])
def joined(request, world):
    """A site, and a client whose connection is older than the attach."""
    site = world.site(world.place(request.param))
    client = site.client()
    client.drive(1)
    site.attach()
    return site, client



def test_first_request_over_its_limit_waits(joined):
    site, client = joined
    site.limit("user", burst=0)
    client.ask("/over")
    eventually(lambda: site.packets("held") > 1, "it has come again")
    assert site.server.served() == 1
    site.limit("user", qps=0.01, burst=1)
    assert client.check(client.read(), "/over") == 200
    assert client.drive(2) == [429] * 2
    assert site.weir.counts()["passed"] == 1


def test_nothing_is_charged_twice(joined):
    site, client = joined
    site.limit("user", burst=BURST)
    assert client.drive(BURST + 1) == [200] * BURST + [429]
    assert site.packets("held") == 0


def test_pipelined(joined):
    """Those that are within pass, and when they have been answered, so is the rest."""
    site, client = joined
    site.limit("user", burst=BURST)
    client.send(b"".join(client.head(f"/{i}") for i in range(10)))
    assert [client.read().status for _ in range(BURST + 1)] == [200] * BURST + [429]
    client.expect_end()
    assert site.server.served() == 1 + BURST


@needs_hold
def test_heads_in_pieces_are_charged_by_their_ends(joined):
    """And the connection's first line that begins before its packet costs one more: it may be a request of HTTP/0.9."""
    site, client = joined
    site.limit("user", burst=BURST + 1)

    def send_in_pieces(target):
        head = client.head(target)
        client.send(head[:9])
        client.settle()
        client.send(head[9:])

    for i in range(BURST):
        send_in_pieces(f"/{i}")
        assert client.check(client.read(), f"/{i}") == 200
    send_in_pieces("/over")
    eventually(lambda: site.packets("held_record") > 1, "it has come again")
    assert site.server.served() == 1 + BURST
    site.weir("pause")
    assert client.check(client.read(), "/over") == 200


def test_body_that_was_under_way_passes(world):
    site = world.site(world.veth())
    client = site.client()
    body = b"0123456789abcdef" * 20000
    client.send(client.head("/upload", "POST", Content_Length=len(body)) + body[:100000])
    client.settle()
    site.attach()
    site.limit("user", burst=0)
    client.send(body[100000:])
    assert client.check(client.read(), "/upload", "POST", body) == 200
    assert site.packets("held") + site.packets("held_record") == 0


@pytest.fixture(params=["its first", "its second"])
def waiting(request, world):
    """A site, and a client that waits for an answer while the server is attached."""
    site = world.site(world.veth())
    client = site.client()
    if request.param == "its second":
        assert client.get("/before") == 200
        time.sleep(0.1)
    client.ask("/first?held=1")
    eventually(lambda: "/first?held=1" in site.server.targets(), "the server has the first request")
    site.attach()
    return site, client


@needs_hold
def test_who_waits_and_pipelines_has_his_answers_in_their_order(waiting):
    """How many answers are due to him nobody knows: what is over its limit waits, and is never answered before its turn."""
    site, client = waiting
    site.limit("user", burst=1)
    client.ask("/second?delay_ms=500")
    client.settle()
    site.server.gate.set()
    assert client.check(client.read(), "/first?held=1") == 200
    client.ask("/third")
    assert client.check(client.read(), "/second?delay_ms=500") == 200
    eventually(lambda: site.packets("held_record") > 1, "it has come again")
    assert "/third" not in site.server.targets()
    site.weir("pause")
    assert client.check(client.read(), "/third") == 200


def test_who_waits_and_pipelines_keeps_his_seats(waiting):
    """Until his connection ends: which of his requests is answered nobody knows."""
    site, client = waiting
    site.weir("limit", "set", "one", "--key", "total", "--in-flight", 1)
    client.ask("/second?delay_ms=500")
    client.settle()
    site.server.gate.set()
    assert client.check(client.read(), "/first?held=1") == 200
    assert site.client().get("/other") == 429
    assert client.check(client.read(), "/second?delay_ms=500") == 200
    assert site.client().get("/other") == 429
    client.close()
    eventually(lambda: site.limit_of("one")["in_flight"] == 0, "his seat is free")
    assert site.client().get("/other") == 200


@needs_hold
def test_one_packet_that_was_not_read(world):
    """As one that has passed ingress just before the attach: it comes again, and the connection is read like any other."""
    site = world.site(world.veth())
    client = RawClient(site.place, site.server.port)
    world.at_end(client.close)
    head = b"GET /%d HTTP/1.1\r\nHost: x\r\nX-Fill: %s\r\n\r\n"
    assert client.insist(head % (0, b"x" * 200))
    site.attach()
    site.limit("user", burst=BURST)
    client.send(head % (1, b"x" * 200), fragments=64)
    eventually(lambda: site.packets("stray") == 1, "it is dropped")
    for i in range(1, BURST + 3):
        assert client.insist(head % (i, b"x" * 200))
    eventually(lambda: site.server.served() >= 1 + BURST, "the server has read them")
    assert site.server.served() == 1 + BURST
    assert site.unread() == {"mid_stream": 1}
    assert site.weir.counts()["shed"] == 2
