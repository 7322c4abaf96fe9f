# SPDX-License-Identifier: GPL-2.0
"""
Limits on connections, of what reaches the server behind a translation of addresses: a program on the way sees others than
the server's. They are asked for what the socket is about to get.
"""
import os
import time

import pytest

from lib.netns import Place
from lib.process import eventually
from lib.raw import ACK, RST
from lib.tun import Tunnel
from test_admission import NO_PROXY, RATE, Half, Silent, attempts, connect, connects, limit, several, taken

RULES = """
table inet translated {{
    chain prerouting {{
        type nat hook prerouting priority -100;
        {ip} daddr {address} tcp dport {port} dnat {ip} to {there};
        {ip} daddr {there} tcp dport {other_port} redirect to :{port};
    }}
}}
"""

pytestmark = [pytest.mark.together, pytest.mark.alters]


class Ways:
    """To one server: as it is, by another address, and by another port."""

    def __init__(self, world, family=4):
        self.world = world
        place = world.veth(family)
        ip, there, everywhere = ("ip6", "fd00:7::9", "::") if family == 6 else ("ip", "10.9.7.9", "0.0.0.0")
        world.address(place.server_ns, there + ("/64" if family == 6 else "/24"))
        self.site = world.site(place, world.echo(Place(place.server_ns, place.server_ns, everywhere, everywhere)))
        port, other_port = self.site.server.port, world.port()
        try:
            place.server_ns.run("nft", "-f", "-", input=RULES.format(ip=ip, address=place.address, port=port, there=there,
                                                                   other_port=other_port))
        except AssertionError as why:
            pytest.skip(f"no NAT here: {why}")
        self.direct, self.address, self.port = (there, port), (place.address, port), (there, other_port)


@pytest.fixture(params=[4, 6], ids=["IPv4", "IPv6"])
def ways(world, request):
    ways = Ways(world, request.param)
    ways.site.attach(*NO_PROXY)
    return ways


@pytest.fixture(params=["address", "port"])
def to(ways, request):
    return getattr(ways, request.param)


@pytest.mark.parametrize("n", [2, 3, 4, 9])
def test_rate(ways, to, n):
    limit(ways.site, "--key", "source", *RATE, "--burst", 3)
    assert connects(ways.site, n, to=to) == min(n, 3)
    assert attempts(ways.site)["admitted"] == min(n, 3)
    assert ("dropped" in attempts(ways.site)) == (n > 3)
    assert ways.site.limit_of("conns")["admitted"] == min(n, 3)


def test_open(ways, to):
    limit(ways.site, "--key", "source", "--open", 2)
    first, second = connect(ways.site, to=to), connect(ways.site, to=to)
    assert connect(ways.site, to=to) == "timeout"
    assert taken(ways.site) == 2
    first.close()
    eventually(lambda: taken(ways.site) == 1, "its seat is free")
    assert connects(ways.site, 2, to=to) == 1
    second.close()
    assert ways.site.limit_of("conns")["highest"] == 2


def test_all_ways_have_one_limit(ways):
    """A connection that comes as it is is asked once, before its addresses could be translated."""
    limit(ways.site, "--key", "source", *RATE, "--burst", 6)
    limit(ways.site, "--key", "source", "--open", 6, name="open")
    for to in (ways.direct, ways.address, ways.port) * 2:
        assert connects(ways.site, 1, to=to) == 1
    assert attempts(ways.site) == {"admitted": 6}
    assert (ways.site.limit_of("conns")["admitted"], taken(ways.site, "open")) == (6, 6)
    for to in ways.direct, ways.address, ways.port:
        assert connect(ways.site, to=to) == "timeout"
    assert taken(ways.site, "open") == 6


def test_who_is_refused_gets_no_reset(ways, to):
    """Where the socket is about to get it, nothing can be sent."""
    limit(ways.site, "--key", "source", *RATE, "--burst", 1, "--over", "reset")
    assert connects(ways.site, 1, to=ways.direct) == 1
    assert connect(ways.site, to=ways.direct) == "ECONNREFUSED"
    assert attempts(ways.site) == {"admitted": 1, "reset": 1}
    assert connect(ways.site, to=to) == ("timeout" if to == ways.port else "ECONNREFUSED")


def test_dry_run_and_pause(ways, to):
    limit(ways.site, "--key", "source", *RATE, "--burst", 1, "--dry-run")
    assert connects(ways.site, 3, to=to) == 3
    assert attempts(ways.site) == {"admitted": 1, "dry_run_refused": 2}
    limit(ways.site, "--enforce")
    assert connect(ways.site, to=to) == "timeout"
    ways.site.weir("pause")
    assert connects(ways.site, 2, to=to) == 2


def test_exempt_sources_are_counted_once(world):
    ways = Ways(world)
    ways.site.attach(*NO_PROXY, "--exempt-source", ways.site.place.client_address)
    limit(ways.site, "--key", "source", *RATE, "--burst", 0)
    for to in ways.direct, ways.address, ways.port:
        assert connects(ways.site, 2, to=to) == 2
    assert attempts(ways.site) == {"exempt": 6}


def test_one_interface(world):
    """It is limited, whatever address and port its packets are for at first."""
    ways = Ways(world)
    ways.site.attach(*NO_PROXY, "--interface", "eth0")
    limit(ways.site, "--key", "source", *RATE, "--burst", 2)
    assert connects(ways.site, 3, to=ways.address) == 2
    assert connects(ways.site, 1, to=ways.direct) == 0
    assert connects(ways.site, 1, to=ways.port) == 0


def test_other_interface(world):
    """What comes by it is not limited, whatever address and port its packets are for at first."""
    ways = Ways(world)
    ways.site.attach(*NO_PROXY, "--interface", "lo")
    limit(ways.site, "--key", "source", *RATE, "--burst", 2)
    for to in ways.direct, ways.address, ways.port:
        assert connects(ways.site, 3, to=to) == 3
    assert not attempts(ways.site)


@pytest.mark.parametrize("options", [[], ["--interface", "tun0"]], ids=["all", "named"])
def test_device_without_ethernet(world, options):
    """No program is on it."""
    if not os.path.exists("/dev/net/tun"):
        pytest.skip("no /dev/net/tun here")
    tunnel = Tunnel(world.namespace("s"), world.namespace("c"))
    world.at_end(tunnel.close)
    site = world.site(tunnel.place)
    site.attach(*NO_PROXY, *options)
    limit(site, "--key", "source", *RATE, "--burst", 3)
    assert connects(site, 5) == 3
    assert attempts(site)["admitted"] == 3


@pytest.mark.parametrize("n", [2, 3, 4, 20])
def test_handshakes_side_by_side(world, n):
    """Each of them was answered before one was complete."""
    ways = Ways(world)
    ways.site.attach(*NO_PROXY)
    limit(ways.site, "--key", "source", *RATE, "--burst", 3)
    halves = several(Half, ways.site, n)
    for half in halves:
        half.complete()
    eventually(lambda: sum(attempts(ways.site).values()) == n, "all have been asked")
    assert attempts(ways.site) == {"admitted": min(n, 3), **({"dropped": n - 3} if n > 3 else {})}
    eventually(lambda: len(ways.site.server.connections) == min(n, 3), "the server has no others")


@pytest.fixture
def cookies(world):
    """The kernel answers each SYN with a cookie. All is on one CPU, whose next packet says what became of the one before."""
    cpus = os.sched_getaffinity(0)
    world.at_end(os.sched_setaffinity, 0, cpus)
    os.sched_setaffinity(0, {min(cpus)})
    ways = Ways(world)
    ways.site.attach(*NO_PROXY)
    world.setting(ways.site.place.server_ns, "net.ipv4.tcp_syncookies", 2)
    return ways.site


def test_cookies(cookies):
    limit(cookies, "--key", "source", "--open", 2)
    limit(cookies, "--key", "source", *RATE, "--burst", 3, name="rate")
    halves = several(Half, cookies, 5)
    assert (taken(cookies), cookies.limit_of("rate")["admitted"]) == (0, 0)
    for half in halves:
        half.complete()
    eventually(lambda: attempts(cookies).get("dropped") == 3, "the others are refused")
    assert attempts(cookies)["admitted"] == 2
    assert (taken(cookies), cookies.limit_of("rate")["admitted"]) == (2, 2)
    eventually(lambda: len(cookies.server.connections) == 2, "the server has two")
    for half in halves:
        half.send(at=half.next + 1, flags=RST)
    eventually(lambda: taken(cookies) == 0, "all seats are free")


def test_cookies_that_are_none(cookies):
    """Who sends them may not be whom he says."""
    limit(cookies, "--key", "source", *RATE, "--burst", 1)
    limit(cookies, "--key", "source", "--open", 1, name="open")
    (silent,) = several(Silent, cookies, 1)
    for n in range(20):
        silent.send(at=silent.next + 1, ack=n * 12345, flags=ACK)
    time.sleep(0.1)
    assert "admitted" not in attempts(cookies) and "dropped" not in attempts(cookies)
    assert connects(cookies, 2) == 1
    assert attempts(cookies)["admitted"] == 1
    assert (taken(cookies, "open"), cookies.limit_of("conns")["admitted"]) == (1, 1)
