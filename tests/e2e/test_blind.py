# SPDX-License-Identifier: GPL-2.0
"""
Segments that are as if they were a client's, of one who does not know its numbers or only some of them (RFC 5961): what the
server's socket does not take for its client's changes nothing here, either.
"""
import time

import pytest

from lib.loss import POST, TABLE, Loss
from lib.process import eventually
from lib.raw import ACK, FIN, PSH, RST, SYN, Impostor, RawClient

pytestmark = pytest.mark.together

FAR = 1 << 30
GET = b"GET /forged HTTP/1.1\r\nHost: x\r\n\r\n"

FORGED = {
    "syn": {"flags": SYN, "seq": FAR},
    "syn in the window": {"flags": SYN, "seq": 100},
    "syn with an option": {"flags": SYN, "seq": FAR, "options": b"\2\4\5\xb4"},
    "rst ahead": {"flags": RST, "seq": FAR},
    "rst behind": {"flags": RST, "seq": -FAR},
    "rst in the window": {"flags": RST, "seq": 5},
    "rst that acknowledges": {"flags": RST | ACK, "seq": 5, "ack": FAR},
    "data ahead": {"flags": PSH | ACK, "seq": FAR, "data": GET},
    "data behind": {"flags": PSH | ACK, "seq": -FAR, "data": GET},
    "data with an impossible acknowledgement": {"flags": PSH | ACK, "ack": FAR, "data": GET},
    "data with an old acknowledgement": {"flags": PSH | ACK, "ack": -FAR, "data": GET},
    "data with an old timestamp": {"flags": PSH | ACK, "data": GET, "clock": -FAR},
    "data without flags": {"flags": 0, "data": GET},
    "fin ahead": {"flags": FIN | ACK, "seq": FAR},
    "fin behind": {"flags": FIN | ACK, "seq": -FAR},
    "fin without an acknowledgement": {"flags": FIN},
    "fin with an impossible acknowledgement": {"flags": FIN | ACK, "ack": FAR},
    "acknowledgement from ahead": {"flags": ACK, "seq": FAR},
    "acknowledgement from behind": {"flags": ACK, "seq": -FAR},
    "acknowledgement of what was not sent": {"flags": ACK, "ack": FAR},
    "acknowledgement from behind and the future": {"flags": ACK, "seq": -FAR, "clock": FAR},
}


@pytest.fixture
def blind(world):
    site = world.site(world.veth())
    site.attach()
    site.limit("user", burst=0)
    client = site.client()
    assert client.get("/livez") == 200
    impostor = Impostor(site.place, client.socket)
    world.at_end(impostor.close)
    return site, client, impostor


def forge(impostor, kind):
    impostor.send(**FORGED[kind])
    time.sleep(0.02)


def test_untouched(blind):
    site, client, impostor = blind
    for i, kind in enumerate(FORGED):
        forge(impostor, kind)
        assert client.get(f"/livez/{i}") == 200, kind
    assert len(site.server.connections) == 1
    assert site.packets("translated") == 0
    site.check(passed=0, shed=0, exempt=1 + len(FORGED))
    client.close()
    eventually(lambda: site.status()["connections"] == 0, "nothing is known of it any more")


def test_translated(blind):
    site, client, impostor = blind
    assert client.get("/refused") == 429
    for i, kind in enumerate(FORGED):
        forge(impostor, kind)
        assert client.get(f"/livez/{i}") == 200, kind
        forge(impostor, kind)
        assert client.get(f"/refused/{i}") == 429, kind
    assert len(site.server.connections) == 1
    site.check(passed=0, shed=1 + len(FORGED), exempt=1 + len(FORGED))


def test_forged_before_each(blind):
    """Each kind on a connection of its own, before its first request."""
    site, _, _ = blind
    for i, kind in enumerate(FORGED):
        client = site.client()
        impostor = Impostor(site.place, client.socket)
        forge(impostor, kind)
        assert client.drive(2, f"/{i}") == [429, 429], kind
        impostor.close()
        client.close()
    site.check(passed=0, shed=2 * len(FORGED), exempt=1)


def test_a_reset_that_is_none(blind):
    """Who makes weir forget a connection would be let be until it is known again."""
    site, client, impostor = blind
    forge(impostor, "rst in the window")
    time.sleep(10.5)
    assert client.drive(2) == [429, 429]
    assert site.unread() == {}


def test_a_reset_of_the_firewalls(world):
    """The server's host refuses a packet, and the server knows nothing of it: its request goes on, and keeps its seat."""
    site = world.site(world.veth())
    site.attach()
    site.weir("limit", "set", "one", "--key", "total", "--verb", "get", "--in-flight", 1)
    Loss(site.place.server_ns).nft(f"add rule inet {TABLE} input {POST} reject with tcp reset\n")
    client = RawClient(site.place, site.server.port)
    world.at_end(client.close)
    assert client.insist(b"GET /first?held=1 HTTP/1.1\r\nHost: x\r\n\r\n")
    client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", flags=PSH | ACK)
    time.sleep(0.3)
    assert site.limit_of("one")["in_flight"] == 1
    assert site.client().get("/second") == 429
    site.server.gate.set()
    eventually(lambda: client.receive() or client.stream.endswith(b"/first?held=1\n"), "the answer comes")
    assert site.client().get("/third") == 200


def test_a_reset(blind):
    site, client, impostor = blind
    impostor.send(RST)
    eventually(lambda: site.server.connections[0].ending == "reset", "the server's socket takes it")
    eventually(lambda: site.status()["connections"] == 0, "nothing is known of it any more")
