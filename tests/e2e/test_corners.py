# SPDX-License-Identifier: GPL-2.0
"""TCP's corners: what weir charges, answers and forgets there is what the server's socket takes, acknowledges and forgets."""
import socket
import time

import pytest

from lib.process import eventually
from lib.raw import ACK, FIN, RawClient

pytestmark = pytest.mark.together

SOURCE_PORT = 33333
IP_TRANSPARENT = 19


def get(path):
    return b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode()


def raw_client(site, **options):
    client = RawClient(site.place, site.server.port, **options)
    site.world.at_end(client.close)
    return client


@pytest.fixture
def corner(world):
    site = world.site(world.veth())
    site.attach()
    site.limit("user", burst=1)
    return site


def sockets(site, state):
    return site.place.server_ns.run("ss", "-Htn", "state", state, f"( sport = :{site.server.port} )")


@pytest.mark.parametrize("translated", [False, True])
def test_the_same_ends_in_time_wait(corner, translated):
    """The server has closed first, and remembers the connection; its client begins another one from the same port."""
    for i in range(4):
        client = corner.client(source=(corner.place.client_address, SOURCE_PORT))
        if translated:
            assert client.get(f"/{i}") == (429 if i else 200)
            assert client.get(f"/more/{i}") == 429
        assert client.get(f"/livez/{i}?close=1") == 200
        client.expect_end()
        client.close()
        eventually(lambda: str(SOURCE_PORT) in sockets(corner, "time-wait"), "the server remembers it")
        time.sleep(0.05)
    assert len(corner.server.connections) == 4
    shed = 7 if translated else 0
    corner.check(passed=translated, shed=shed, exempt=4)
    if not translated:
        eventually(lambda: corner.status()["connections"] == 0, "nothing is known of them any more")


@pytest.mark.parametrize("translated", [False, True])
def test_simultaneous_close(corner, translated):
    client = raw_client(corner)
    assert client.insist(get("first"))
    if translated:
        assert client.insist(get("refused"))
    eventually(lambda: client.receive() or b"first" in client.stream, "the answer is there")
    corner.server.hang_up(0)
    eventually(lambda: sockets(corner, "fin-wait-1"), "the server has closed, and its end is not acknowledged")
    client.send(flags=FIN | ACK)
    client.next += 1
    eventually(lambda: client.receive() or client.acked == client.next & 0xffffffff, "the client's end is acknowledged")
    assert sockets(corner, "closing")
    client.peer += 1
    client.send()
    eventually(lambda: sockets(corner, "time-wait"), "both ends are acknowledged")
    if not translated:
        eventually(lambda: corner.status()["connections"] == 0, "nothing is known of it any more")
    corner.check(passed=1, shed=translated)


@pytest.mark.parametrize("translated", [False, True])
def test_keepalive_with_a_byte(corner, translated):
    """Old systems probe with a byte, of any value, at the place of the last one."""
    client = raw_client(corner)
    assert client.insist(get("first"))
    if translated:
        assert client.insist(get("refused"))
    for _ in range(3):
        client.send(b"X", at=client.next - 1)
        time.sleep(0.05)
        client.receive()
    assert client.insist(get("livez"))
    assert client.insist(get("refused"))
    corner.check(passed=1, shed=1 + translated, exempt=1)
    assert corner.unread() == {}


def test_data_in_the_syn(corner):
    """Without TCP Fast Open the server takes none of it, and it comes again."""
    client = raw_client(corner, syn_data=get("first"))
    assert client.insist(get("first"))
    assert client.insist(get("second"))
    corner.check(passed=1, shed=1)
    assert corner.unread() == {}


def test_first_request_from_beyond_a_gap(corner):
    """The server keeps it until the gap is filled: it is charged when it is its turn."""
    client = raw_client(corner)
    first, second = get("first"), get("second")
    client.send(second, at=client.next + len(first))
    time.sleep(0.1)
    assert client.insist(first)
    client.insist(second)
    corner.check(passed=1, shed=1)


TPROXY = """
table ip redirected {{
    chain prerouting {{
        type filter hook prerouting priority mangle;
        tcp dport 80 tproxy to :{port} accept
    }}
}}
"""


def test_tproxy(world):
    """The port that is attached is the one that clients connect to, whatever the port of the listening socket."""
    place = world.veth()
    server = world.echo(place)
    server.listener.setsockopt(socket.SOL_IP, IP_TRANSPARENT, 1)
    place.server_ns.run("nft", "-f", "-", input=TPROXY.format(port=server.port))
    server.port = 80
    site = world.site(place, server)
    attached = site.weir.run("attach", "web", "--port", 80, "--netns", place.server_ns.path)
    assert attached.returncode == 0
    assert "nobody listens on port 80" in attached.stderr
    world.attached()
    site.limit("user", burst=1)
    assert site.client().drive(3) == [200, 429, 429]
    assert server.served() == 1
    site.check(passed=1, shed=2)
