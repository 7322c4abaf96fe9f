# SPDX-License-Identifier: GPL-2.0
"""TCP in its less usual moods, over connections that are translated."""
import socket
import sys

import pytest

from lib import loss
from lib.netns import Place
from lib.process import eventually
from test_paths import check_mixed

pytestmark = pytest.mark.together

BIG = 5_000_000
# In struct tcp_info.
TCPI_BACKOFF = 4
TCPI_LAST_ACK_RECV = 56


def check_translated(site, client=None):
    """Sheds, and large transfers both ways behind them."""
    site.limit("user", burst=0)
    client = client or site.client()
    for i in range(3):
        assert client.drive(2, f"/{i}") == [429, 429]
        assert client.get(f"/livez/{i}?size={BIG}") == 200
        assert client.exchange(f"/livez/{i}?echo=1", "POST", b"0123456789abcdef" * (BIG // 16)).status == 200


@pytest.mark.parametrize("setting", ["tcp_timestamps=0", "tcp_sack=0", "tcp_window_scaling=0", "tcp_ecn=1",
                                     "tcp_syncookies=2", "tcp_timestamps=0 tcp_sack=0",
                                     "tcp_timestamps=0 tcp_syncookies=2"])
def test_options(world, setting):
    place = world.veth()
    for namespace in place.server_ns, place.client_ns:
        for name, value in (one.split("=") for one in setting.split()):
            world.setting(namespace, f"net.ipv4.{name}", value)
    site = world.site(place)
    site.attach()
    check_mixed(site, seed=11)


def lengthen(sock):
    """Every packet that this socket sends has IP options, or an extension header, of no meaning."""
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_DSTOPTS, b"\0\0\1\4\0\0\0\0")
    else:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, b"\1\1\1\0")


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("kind", ["loopback", "veth"])
def test_ip_options(world, kind, family):
    site = world.site(world.place(kind, family))
    site.attach()
    check_translated(site, site.client(prepare=lengthen))
    client = site.client(prepare=lengthen)
    client.send(client.head("/refused", "POST", Expect="100-continue", Content_Length=5))
    assert client.check(client.read(), "/refused", "POST") == 429
    client.expect_end()
    assert site.unanswered() == {}


@pytest.mark.alters
@pytest.mark.parametrize("mtu", [1300, 9000, 65535])
def test_mtu(world, mtu):
    place = world.veth()
    for namespace, device in place.devices():
        namespace.ip("link", "set", device, "mtu", str(mtu))
    site = world.site(place)
    site.attach()
    check_translated(site)


@pytest.mark.alters
@pytest.mark.parametrize("family", [4, 6])
def test_big_tcp(world, family):
    """Packets of more than 64 KB, which their IP header cannot tell."""
    place = world.veth(family)
    sizes = ["gso_max_size", "gro_max_size"] + (["gso_ipv4_max_size", "gro_ipv4_max_size"] if family == 4 else [])
    for namespace, device in place.devices():
        try:
            namespace.ip("link", "set", device, *(word for size in sizes for word in (size, "196608")))
        except AssertionError as why:
            pytest.skip(f"no BIG TCP here: {why}")
    site = world.site(place)
    site.attach()
    check_translated(site)


def discarded_sacks(namespace):
    """SACK blocks that a sender here could not make sense of."""
    names, values = (line.split() for line in namespace.run("grep", "^TcpExt:", "/proc/net/netstat").splitlines())
    counters = dict(zip(names, values))
    return int(counters["TCPSACKDiscard"])


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("family", [4, 6])
def test_loss_in_a_large_transfer(world, family, n):
    """SACK tells what is missing in the middle, in translated numbers."""
    place = world.veth(family)
    site = world.site(place)
    site.attach()
    site.limit("user", burst=0)
    client = site.client()
    assert client.drive(2) == [429, 429]
    for namespace in place.server_ns, place.client_ns:
        rules = loss.Loss(namespace)
        rules.nft(f"add rule inet {loss.TABLE} input meta length > 1000 numgen inc mod 20 < {n} counter drop\n")
    for i in range(3):
        assert client.get(f"/livez/{i}?size=600000") == 200
        assert client.get(f"/refused/{i}") == 429
        assert client.exchange(f"/livez/{i}?echo=1", "POST", b"0123456789" * 60_000).status == 200
    site.check(passed=0, shed=5, exempt=6)
    for namespace in place.server_ns, place.client_ns:
        assert discarded_sacks(namespace) == 0


def test_dual_stack_socket(world):
    """An IPv4 client of a server that listens on :: only, as Go's and Node's do."""
    place = world.veth(4)
    server = world.echo(Place(place.server_ns, place.server_ns, "::", "::1"))
    site = world.site(place, server)
    site.attach()
    check_mixed(site, seed=3)


def test_deferred_accept(world):
    place = world.veth()
    server = world.echo(place)
    server.listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 5)
    site = world.site(place, server)
    site.attach()
    check_mixed(site, seed=5)


@pytest.mark.parametrize("kind", ["loopback", "veth"])
def test_port_is_used_again(world, kind):
    """A new connection of the same two ends begins while the old one's numbers are still kept."""
    site = world.site(world.place(kind))
    site.attach()
    site.limit("user", burst=0)
    for i in range(4):
        client = site.client(source=(site.place.client_address, 33333))
        assert client.drive(2, f"/{i}") == [429, 429]
        assert client.get(f"/livez/{i}?size=100000") == 200
        client.reset()
        eventually(lambda: len(site.server.connections) == i + 1 and site.server.connections[i].ending,
                   "the server has seen the end")
    site.check(passed=0, shed=8, exempt=4)


def tcp_info(sock):
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)


class Answers:
    """
    How often an end's probes are answered: each time its silence, of a second, is at an end. A probe of the other end's is no answer,
    and does not end it.
    """

    def __init__(self, sock):
        self.sock = sock
        self.last_ms = self.n = 0

    def count(self):
        now_ms = int.from_bytes(tcp_info(self.sock)[TCPI_LAST_ACK_RECV:][:4], sys.byteorder)
        self.n += now_ms < self.last_ms - 500
        self.last_ms = now_ms
        return self.n


def probe(sock):
    """From now on this end asks every second of silence whether the other one is there, and gives up when two are not answered."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 2)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def test_window_opens_while_the_429_is_lost(world):
    """What the server says meanwhile does not acknowledge the request, or nobody would ask for the 429 again."""
    place = world.veth()
    server = world.echo(place)
    server.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
    site = world.site(place, server)
    site.attach()
    site.limit("user", burst=0)
    client = site.client()
    assert client.drive(1) == [429]
    rules = loss.Loss(place.client_ns)
    # The body is with the server's kernel when the answer comes, and is read behind it.
    target = "/livez?early_ms=600&delay_ms=500"
    client.send(client.head(target, "POST", Content_Length=20_000) + b"e" * 20_000)
    client.check(client.read(), target)
    client.settle()
    rules.drop("input", loss.SHED, 4)
    assert client.get("/refused") == 429
    assert rules.lost() == 4
    assert client.get("/livez") == 200
    site.check(passed=0, shed=2, exempt=2)


@pytest.mark.parametrize("kind", ["loopback", "veth"])
def test_keepalive_probes(world, kind):
    """Both sides ask whether the other one is there, again and again, in the numbers of a shed request."""
    site = world.site(world.place(kind))
    site.attach()
    site.limit("user", burst=0)
    client = site.client()
    assert client.get("/livez") == 200
    assert client.drive(2) == [429, 429]
    ends = client.socket, site.server.connections[0].socket
    for sock in ends:
        probe(sock)
    answers = [Answers(sock) for sock in ends]
    eventually(lambda: min([end.count() for end in answers]) >= 2, "both have asked twice, and are answered")
    assert client.get("/livez") == 200
    assert client.drive(2) == [429, 429]
    site.check(passed=0, shed=4, exempt=2)


def asked_in_vain(sock):
    """How often in a row its timer has run out."""
    return tcp_info(sock)[TCPI_BACKOFF]


@pytest.mark.parametrize("kind", ["loopback", "veth"])
def test_closed_window(world, kind):
    """A client that does not read for a while; the server probes its window."""
    site = world.site(world.place(kind))
    site.attach()
    site.limit("user", burst=0)
    client = site.client(receive_buffer=4096)
    assert client.drive(2) == [429, 429]
    client.ask("/livez?size=3000000")
    eventually(lambda: [c for c in site.server.connections if asked_in_vain(c.socket) >= 2],
               "the server has asked twice, each time later")
    client.check(client.read(), "/livez?size=3000000")
    assert client.drive(2) == [429, 429]
