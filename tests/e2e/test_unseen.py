# SPDX-License-Identifier: GPL-2.0
"""What reaches the server by a way on which no program reads is held instead, packet by packet."""
import os
import time
from pathlib import Path

import pytest

from lib import netns
from lib.client import Client
from lib.netns import Place
from lib.outsider import Outsider
from lib.process import eventually
from lib.raw import RawClient
from lib.tun import Tunnel, answered_by_tunnel

BURST = 3
REDIRECT = """
table ip redirected {{
    chain prerouting {{ type nat hook prerouting priority -100; tcp dport {redirected} redirect to :{port}; }}
    chain output {{ type nat hook output priority -100; tcp dport {redirected} redirect to :{port}; }}
}}
"""
ELSEWHERE = """
table ip elsewhere {{
    chain prerouting {{
        type nat hook prerouting priority -100;
        ip daddr {address} tcp dport {port} dnat to {there};
    }}
}}
"""
SYNPROXY = """
table inet proxied {{
    chain prerouting {{ type filter hook prerouting priority -300; tcp dport {port} tcp flags syn notrack; }}
    chain input {{
        type filter hook input priority 0;
        tcp dport {port} ct state invalid,untracked synproxy mss 1460 wscale 7 timestamp sack-perm;
        ct state invalid drop;
    }}
}}
"""

pytestmark = [pytest.mark.together,
              pytest.mark.skipif("cgroup2" not in Path("/proc/mounts").read_text(), reason="no cgroup2 is mounted")]


def check_held(site, client):
    """As many requests as the limit allows pass, and the next one waits until there is another limit."""
    site.limit("user", burst=BURST)
    assert client.drive(BURST) == [200] * BURST
    client.ask("/held")
    eventually(lambda: site.packets("held_record") > 0, "the next one is withheld")
    assert site.server.served() == BURST
    site.limit("user", qps=10, burst=BURST + 1)
    assert client.check(client.read(), "/held") == 200


# On loopback the first request is read, as it is redirected before; but not its answer.
@pytest.mark.parametrize("kind", ["loopback", "veth"])
def test_redirected_in_the_same_namespace(world, kind):
    place = world.place(kind)
    site = world.site(place)
    redirected = world.port()
    try:
        place.server_ns.run("nft", "-f", "-", input=REDIRECT.format(redirected=redirected, port=site.server.port))
    except AssertionError as why:
        pytest.skip(f"no NAT here: {why}")
    site.attach()
    client = Client(place, redirected)
    world.at_end(client.close)
    check_held(site, client)
    assert site.unread() == {"unseen": 1}
    # Who comes directly is answered.
    site.limit("user", burst=0)
    assert site.client().drive(1) == [429]


def send_elsewhere(place, port, there):
    """What comes to the place's address is for another one, though somebody listens on all addresses here."""
    try:
        place.server_ns.run("nft", "-f", "-", input=ELSEWHERE.format(address=place.address, port=port, there=there))
    except AssertionError as why:
        pytest.skip(f"no NAT here: {why}")


@pytest.fixture
def elsewhere(world):
    """A server on all addresses; what comes to one of them goes to another."""
    place = world.veth()
    site = world.site(place, world.echo(Place(place.server_ns, place.server_ns, "0.0.0.0", "0.0.0.0")))
    world.address(place.server_ns, "10.9.70.1/32", "lo")
    send_elsewhere(place, site.server.port, "10.9.70.1")
    return site


@pytest.mark.alters
@pytest.mark.parametrize("options", [(), ("--interface", "eth0")], ids=["all", "one"])
def test_redirected_to_another_address(elsewhere, options):
    elsewhere.attach(*options)
    check_held(elsewhere, elsewhere.client())
    assert elsewhere.unread() == {"unseen": 1}


class Hasty(RawClient):
    """Its first data ends the handshake."""

    def handshake(self):
        self.receive()
        self.next += bool(self.peer)
        return self.peer


@pytest.mark.alters
def test_redirected_data_that_ends_a_handshake(elsewhere):
    """Before weir, it is nobody's; the server's listener takes it."""
    elsewhere.attach()
    elsewhere.limit("user", burst=0)
    client = Hasty(elsewhere.place, elsewhere.server.port)
    elsewhere.world.at_end(client.close)
    client.insist(b"GET /hasty HTTP/1.1\r\nHost: x\r\n\r\n", times=4)
    assert elsewhere.packets("held_record") > 0
    assert elsewhere.server.served() == 0


@pytest.mark.alters
def test_redirected_to_another_host(world):
    """A published port of a container, whose host has a server on the same port: it is no business of that server's limits."""
    place = world.veth()
    own = world.site(place, world.echo(Place(place.server_ns, place.server_ns, "0.0.0.0", "0.0.0.0")))
    container = world.namespace("n")
    there, here = netns.add_veth(container, place.server_ns, 4, 2, "eth1")
    world.at_end(container.ip, "link", "del", "eth1")
    container.ip("route", "add", "default", "via", here)
    world.setting(place.server_ns, "net.ipv4.ip_forward", 1)
    send_elsewhere(place, own.server.port, there)
    own.attach()
    own.limit("user", burst=0)
    beyond = world.site(place, world.echo(Place(container, container, there, there), own.server.port))
    assert beyond.client().drive(6) == [200] * 6
    assert beyond.server.served() == 6
    own.check(passed=0, shed=0)


def test_nobody_pays_for_what_a_listener_refuses(world):
    """Data without a handshake may come from anybody, in anybody's name."""
    site = world.site(world.veth())
    site.attach()
    site.limit("user", burst=1)
    client = Outsider(site.place, site.server.port)
    world.at_end(client.close)
    request = b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n"
    for i in range(5):
        client.send(request % i, at=client.first + 1 + 1000 * i, ack=12345)
    client.open()
    assert client.insist(request % 9)
    eventually(lambda: client.receive() or b" 200 " in client.stream, "the client has its token")
    site.check(passed=1, shed=0)


# Its own handshake with the server comes by loopback, where weir may look, or not.
@pytest.mark.parametrize("everywhere", [True, False], ids=["every-interface", "one-interface"])
def test_synproxy(world, everywhere):
    """It answers handshakes in the server's place. From then on it changes the server's numbers, and what the client acknowledges."""
    site = world.site(world.veth())
    try:
        site.place.server_ns.run("nft", "-f", "-", input=SYNPROXY.format(port=site.server.port))
    except AssertionError as why:
        pytest.skip(f"no SYNPROXY here: {why}")
    site.place.server_ns.run("sysctl", "-qw", "net.netfilter.nf_conntrack_tcp_loose=0")
    site.attach(*([] if everywhere else ["--interface", "eth0"]))
    site.limit("user", burst=16)
    clients = [site.client() for _ in range(8)]
    # Linux 6.18 refuses the timestamp of SYNPROXY's acknowledgement in some namespaces, and says its SYN-ACK again after a second. Until then it drops
    # data, which is charged each time.
    eventually(lambda: len(site.server.connections) == 8, "each handshake with the server is complete")
    for client in clients:
        assert client.drive(2) == [200] * 2
    for client in clients:
        client.ask("/more")
    time.sleep(1)
    assert site.server.served() == 16
    # None was read: its numbers would not have been the server's. Without the handshake's, the hold may take some for older than weir.
    unread = site.unread()
    assert unread.pop("unseen") >= 8  # again, where the server says its SYN-ACK again
    assert not unread or (not everywhere and list(unread) == ["mid_stream"])


@pytest.fixture
def tunnel(world):
    if not os.path.exists("/dev/net/tun"):
        pytest.skip("no /dev/net/tun here")
    tunnel = Tunnel(world.namespace("s"), world.namespace("c"))
    world.at_end(tunnel.close)
    return tunnel


@pytest.mark.parametrize("options", [[], ["--interface", "tun0"]], ids=["all", "named"])
def test_device_without_ethernet(world, tunnel, options):
    site = world.site(tunnel.place)
    site.attach(*options)
    check_held(site, site.client())
    assert site.unread() == {"unseen": 1}


def test_answers_by_another_way(world):
    """What comes to the server is read until its client has an answer: nobody knows what the server makes of what comes next."""
    site = world.site(answered_by_tunnel(world))
    site.attach()
    check_held(site, site.client())
    assert site.unread() == {"unseen": 1}


def test_entries_go(world, tunnel):
    """Nobody but the hold sees the end of such a connection."""
    site = world.site(tunnel.place)
    site.attach()
    clients = [site.client() for _ in range(3)]
    for i, client in enumerate(clients):
        assert client.get(f"/{i}") == 200
    assert site.status()["connections"] == 3
    for client in clients:
        client.close()
    eventually(lambda: site.status()["connections"] == 0, "they are forgotten")


def test_interfaces_that_are_not_meant_are_free(world, tunnel):
    site = world.site(tunnel.place)
    site.attach("--interface", "lo")
    site.limit("user", burst=0)
    assert site.client().drive(BURST) == [200] * BURST
    assert site.unread() == {}


def test_fragments(world):
    site = world.site(world.veth())
    site.attach()
    site.limit("user", burst=BURST)
    client = RawClient(site.place, site.server.port)
    world.at_end(client.close)
    for i in range(BURST + 2):
        client.insist(b"GET /%d HTTP/1.1\r\nHost: x\r\nX-Fill: %s\r\n\r\n" % (i, b"x" * 200), times=4, fragments=64)
    assert site.server.served() == BURST
    assert site.unread() == {"unseen": 1}
    assert site.packets("fragment") >= BURST
    assert site.packets("held_record") > 0
