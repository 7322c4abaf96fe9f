# SPDX-License-Identifier: GPL-2.0
"""
What cannot be followed, or not answered, passes unharmed, and is counted under its reason; what is ambiguous passes only
if it is told to (test_reject.py). Where connections are lost here, the agent finds no cgroup2 on which they would be held
(test_hold.py).
"""
import pytest

from lib.process import eventually

pytestmark = pytest.mark.together

TLS_HELLO = bytes.fromhex("160301004a0100004603035b") + bytes(range(66))
HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000")

STREAMS = {
    "tls": TLS_HELLO,
    "http2": HTTP2_PREFACE,
    "not_http": b"\x00\x01\x02 binary \xff\xfe\r\n\r\n",
    "bad_version": b"GET / HTTP/1.2\r\nHost: x\r\n\r\n",
    "bad_header": b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
    "bare_lf": b"GET / HTTP/1.1\nHost: x\n\n",
    "folded_header": b"GET / HTTP/1.1\r\nHost: x\r\nX-Fold: a\r\n b\r\n\r\n",
    "bad_content_length": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1x\r\n\r\nx",
    "length_conflict": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
}


def whole_answer(site, data):
    """All that the server says to these bytes, when nothing more comes."""
    client = site.client()
    client.send(data)
    client.end_of_requests()
    return client.rest()


@pytest.fixture
def unheld(world):
    """An echo server on loopback."""
    site = world.site()
    site.weir.start_without_cgroup2()
    site.attach("--framing", "pass")
    return site


def without_date(answer):
    """The same answer, whatever the time."""
    return b"\r\n".join(line for line in answer.split(b"\r\n") if not line.startswith(b"Date: "))


@pytest.mark.parametrize("program", ["nginx", "haproxy"])
def test_streams_pass(world, program):
    """A real server says the same to them with weir as without; every request would be over its limit."""
    place = world.loopback()
    site = world.site(place, world.real_server(program, place))
    site.weir.start_without_cgroup2()
    site.attach("--framing", "pass")
    site.limit("user", burst=0)
    passed = {reason: without_date(whole_answer(site, data)) for reason, data in STREAMS.items()}
    assert site.unread() == {reason: 1 for reason in STREAMS}
    world.keep()
    site.weir("detach", "web")
    assert passed == {reason: without_date(whole_answer(site, data)) for reason, data in STREAMS.items()}


def test_unread_stays_unread(unheld):
    """A connection that was lost is never limited again."""
    unheld.limit("user", burst=0)
    client = unheld.client()
    client.send(b"\r\n" + client.head("/folded", X_Fold="a\r\n b"))
    eventually(lambda: unheld.unread(), "something could not be read")
    assert unheld.unread() == {"folded_header": 1}


def refused_at_the_end(site, client):
    """The server has the first part of the head: nothing can be taken back but the connection."""
    answer = client.read()
    assert answer.status == 429
    assert answer.fields["connection"] == "close"
    client.expect_end()
    assert site.server.served() == 0
    site.check(passed=0, shed=1)
    assert site.client().get("/again") == 429


def test_split_head(site):
    site.limit("user", burst=0)
    client = site.client()
    head = client.head("/split")
    client.send(head[:20])
    client.settle()
    client.send(head[20:])
    refused_at_the_end(site, client)


def test_split_head_within_the_limit(site):
    site.limit("user", burst=3)
    client = site.client()
    for i in range(3):
        head = client.head(f"/split/{i}")
        client.send(head[:20])
        client.settle()
        client.send(head[20:])
        client.check(client.read(), f"/split/{i}")
    assert client.get("/after") == 429
    assert not site.unanswered()
    site.check(passed=3, shed=1)


def test_pipelined_behind_an_outstanding_answer(site):
    """It is refused as soon as the answer before it has come."""
    site.limit("user", burst=1)
    client = site.client()
    client.ask("/slow?delay_ms=300")
    client.settle()
    client.ask("/second")
    client.check(client.read(), "/slow?delay_ms=300", last=False)
    assert client.read().status == 429
    assert client.get("/third") == 429
    assert set(site.unanswered()) == {"pipelined"}
    site.check(passed=1, shed=2)


def test_pipelined_in_one_packet(site):
    """The first two take the last tokens; the third is refused in its turn, and the last has no more to hope for."""
    site.limit("user", burst=2)
    client = site.client()
    targets = [f"/p/{i}" for i in range(4)]
    client.send(b"".join(client.head(target) for target in targets))
    for target in targets[:2]:
        client.check(client.read(), target, last=False)
    assert client.read().status == 429
    client.expect_end()
    assert site.unanswered().get("pipelined", 0) >= 1
    assert site.packets("cut_short") == 1
    site.check(passed=2, shed=1)


def test_pipelined_last_refused(site):
    """Nothing is behind it, so its connection stays."""
    site.limit("user", burst=2)
    client = site.client()
    targets = [f"/p/{i}" for i in range(3)]
    client.send(b"".join(client.head(target) for target in targets))
    for target in targets[:2]:
        client.check(client.read(), target, last=False)
    assert client.read().status == 429
    assert client.get("/after") == 429
    site.check(passed=2, shed=2)


def test_pipelined_all_refused(site):
    """The first is answered, and the end of the connection answers the others."""
    site.limit("user", burst=0)
    client = site.client()
    client.send(b"".join(client.head(f"/p/{i}") for i in range(3)))
    assert client.read().status == 429
    client.expect_end()
    site.check(passed=0, shed=1)
    assert site.client().get("/livez") == 200


def test_pipelined_with_head_between(site):
    """The answers' ends are known although one has a length and no body."""
    client = site.client()
    methods = ["GET", "HEAD", "GET", "HEAD", "HEAD", "GET"]
    client.send(b"".join(client.head(f"/m/{i}", method) for i, method in enumerate(methods)))
    for i, method in enumerate(methods):
        client.check(client.read(method), f"/m/{i}", method, last=False)
    site.limit("user", burst=0)
    assert client.drive(3) == [429] * 3
    site.check(passed=6, shed=3)


def test_upgrade(unheld):
    """What follows a 101 is no HTTP, even when it looks like it."""
    unheld.limit("user", burst=1)
    client = unheld.client()
    client.ask("/ws?upgrade=1", Connection="Upgrade", Upgrade="websocket")
    assert client.stream.until(b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
    for _ in range(3):
        message = client.head("/looks/like/it")
        client.send(message)
        assert client.stream.exactly(len(message)) == message
    assert unheld.unread() == {"upgrade": 1}
    unheld.check(passed=1, shed=0)


def test_upgrade_that_is_refused(site):
    """The server took it for a plain request: so does weir."""
    site.limit("user", burst=1)
    client = site.client()
    assert client.get("/ws", Connection="Upgrade", Upgrade="websocket") == 200
    assert client.get("/after") == 429
    assert not site.unread()


def test_long_head_in_one_packet(site):
    site.limit("user", burst=0)
    client = site.client()
    fields = {f"X_Filler_{i}": "f" * 1000 for i in range(6)}
    assert client.get("/long", **fields) == 429
    assert client.get("/short") == 429
    site.check(passed=0, shed=2)


@pytest.mark.alters
def test_long_head_over_packets(world):
    place = world.veth()
    place.offload("tso", "off", "gso", "off", "gro", "off")
    site = world.site(place)
    site.attach()
    site.limit("user", burst=0)
    client = site.client()
    fields = {f"X_Filler_{i}": "f" * 1000 for i in range(6)}
    client.ask("/long", **fields)
    refused_at_the_end(site, client)
