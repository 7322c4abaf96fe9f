# SPDX-License-Identifier: GPL-2.0
"""Connections whose segments are signed (TCP-MD5): no byte of them is changed, and what is over the limit waits."""
import errno
import socket
import struct

import pytest

from lib.process import eventually
from lib.raw import ACK, MD5, PSH, Impostor, RawClient

pytestmark = pytest.mark.together

TCP_MD5SIG = 14
KEY = b"a secret of both"
BURST = 3


def sign(sock, peer):
    """The segments to and from this peer, an IPv4 address."""
    address = struct.pack("=HH4s120x", socket.AF_INET, 0, socket.inet_aton(peer))
    try:
        sock.setsockopt(socket.IPPROTO_TCP, TCP_MD5SIG, address + struct.pack("=BBHI80s", 0, 0, len(KEY), 0, KEY))
    except OSError as error:
        if error.errno == errno.ENOPROTOOPT:
            pytest.skip("this kernel does not sign segments (CONFIG_TCP_MD5SIG)")
        raise


@pytest.fixture(params=["loopback", "veth"])
def signed(world, request):
    """A site, and what makes a client that signs; its server takes nothing else from there."""
    site = world.site(world.place(request.param))
    site.attach("--hold", "drop")
    sign(site.server.listener, site.place.client_address)
    return site, lambda: site.client(prepare=lambda sock: sign(sock, site.place.address))


def test_below_the_limit(signed):
    site, client = signed
    site.limit("user", qps=1000, burst=1000)
    site.limit("total", qps=1000, burst=1000)
    client = client()
    assert client.drive(20) == [200] * 20
    assert client.exchange("/large?size=1000000").status == 200
    assert client.exchange("/upload?echo=1", method="POST", body=b"x" * 100_000).status == 200
    assert site.unread() == {"signed": 1}
    assert site.packets("translated") == 0
    assert site.server.served() == 22
    assert sum(site.weir.counts().values()) == 0


def test_over_the_limit_waits(signed):
    site, client = signed
    site.limit("user", burst=BURST)
    client = client()
    assert client.drive(BURST) == [200] * BURST
    client.ask("/waits")
    eventually(lambda: site.packets("held_record") >= 2, "it was withheld, and came again")
    assert site.server.served() == BURST
    site.weir("limit", "delete", "user")
    assert client.check(client.read(), "/waits") == 200
    assert site.status()["records_passed"] == BURST + 1
    assert site.packets("answered") == 0


def test_many_in_a_packet_pay_for_each(signed):
    site, client = signed
    site.limit("user", burst=BURST)
    client = client()
    client.send(client.head("/many") * 10)
    for _ in range(10):
        assert client.check(client.read(), "/many", last=False) == 200
    client.ask("/one-more")
    eventually(lambda: site.packets("held_record") >= 2, "it was withheld, and came again")
    assert site.server.served() == 10  # one token lets a packet in, and the rest is owed


def test_without_its_signature(signed):
    """What is not signed pays for nothing: the server drops it."""
    site, client = signed
    site.limit("user", burst=BURST)
    client = client()
    assert client.get("/first") == 200
    impostor = Impostor(site.place, client.socket)
    site.world.at_end(impostor.close)
    impostor.send(PSH | ACK, data=client.head("/forged"))
    eventually(lambda: site.packets("unacceptable") == 1, "it was dropped")
    assert client.drive(BURST - 1) == [200] * (BURST - 1)
    assert site.status()["records_passed"] == BURST


def test_a_signature_without_a_key(world):
    """The server drops it, and so does weir: a connection is not lost to sight by it."""
    site = world.site(world.veth())
    site.attach()
    site.limit("user", burst=BURST)
    client = RawClient(site.place, site.server.port)
    world.at_end(client.close)
    get = b"GET /r HTTP/1.1\r\nHost: x\r\n\r\n"
    assert client.insist(get)
    client.send(get, options=MD5)
    eventually(lambda: site.packets("unacceptable") == 1, "it was dropped")
    assert [client.insist(get) for _ in range(BURST)] == [True] * BURST
    site.check(passed=BURST, shed=1)
    assert site.unread() == {}
