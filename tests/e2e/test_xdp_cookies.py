# SPDX-License-Identifier: GPL-2.0
"""In a flood of SYNs, XDP answers with the kernel's cookies: the kernel takes what comes back, and nobody is let in or kept out by it."""
import contextlib
import json
import socket
import struct

import pytest

from lib.process import eventually
from test_admission import NO_PROXY, RATE, attempts, connect, connects, limit, taken
from test_xdp import FLOOD, neighbour_connects_in_a_flood, why, xdp_of

pytestmark = pytest.mark.together

ALWAYS = 2  # net.ipv4.tcp_syncookies: as if there were a flood all the time
BY_XDP = "xdp_syn_cookie"


@pytest.fixture(params=[4, 6])
def site(world, request):
    site = world.site(world.veth(request.param))
    site.attach(*NO_PROXY, "--xdp", "generic", "--syn-cookies", "xdp")
    return site


@pytest.fixture
def ipv4(world):
    site = world.site(world.veth())
    site.attach(*NO_PROXY, "--xdp", "generic", "--syn-cookies", "xdp")
    return site


def always(site):
    """The first SYN goes to the kernel, whose cookie marks the listener."""
    site.world.setting(site.place.server_ns, "net.ipv4.tcp_syncookies", ALWAYS)
    connect(site).close()
    site.first = attempts(site)


def since(site):
    """Attempts after always()."""
    now = attempts(site)
    return {outcome: n - site.first.get(outcome, 0) for outcome, n in now.items() if n != site.first.get(outcome, 0)}


def kernel(site, *counters):
    """Counters of TCP's in the server's namespace, read at once: the agent connects there, too, to try conntrack."""
    rows = [row.split() for row in site.place.server_ns.run("nstat", "-asz", *counters).splitlines()]
    values = {row[0]: int(row[1]) for row in rows if row[0] in counters}
    return [values[counter] for counter in counters]


def info(sock):
    """(options, send scale and receive scale, largest segment to send)"""
    data = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    return data[5], data[6], struct.unpack_from("I", data, 16)[0]


def test_connections(site):
    """Real clients, real connections, to the byte. The kernel takes cookies that it has not sent."""
    def not_sent():
        received, sent = kernel(site, "TcpExtSyncookiesRecv", "TcpExtSyncookiesSent")
        return received - sent
    always(site)
    before = not_sent()
    for _ in range(5):
        client = site.client()
        assert client.get("/r?size=300000") == 200
        assert client.exchange("/r", "POST", b"x" * 200_000).status == 200
        options, scales, mss = info(client.socket)
        assert (options & 7, scales, mss) == (0, 0, 1440 if site.place.family == socket.AF_INET6 else 1460)
        client.close()
        eventually(lambda: site.status()["connections"] == 0, "its connection is over")
    assert since(site).get(BY_XDP) == 5
    assert not_sent() - before == 5


def test_who_has_a_connection_is_known(site):
    """His next ones are the kernel's, with all that TCP has. `weir explain` says who would answer."""
    def answered_by():
        said = site.weir.json("explain", "--connection", "--source", site.place.client_address)
        return said["connection"]["flood_answered_by"]
    always(site)
    assert answered_by() == "xdp"
    first = site.client()
    assert first.get("/a") == 200
    assert answered_by() == "kernel"
    second = site.client()
    assert second.get("/b") == 200
    assert since(site).get(BY_XDP) == 1
    options, scales, _ = info(second.socket)
    assert options & 7 == 7 and scales
    for client in first, second:
        client.close()
    eventually(lambda: site.status()["connections"] == 0, "both are over")
    assert site.client().get("/c") == 200
    assert since(site)[BY_XDP] == 2


def test_limits_hold(site):
    """They are asked where the handshake ends: no more get in than may, and none is refused for a SYN's sake."""
    limit(site, "--key", "source", *RATE, "--burst", 4)
    limit(site, "--key", "source", "--open", 2, name="open")
    always(site)
    eventually(lambda: taken(site, "open") == 0, "the first one is over")
    assert connects(site, 4) == 2
    assert since(site)["admitted"] == 2 and taken(site, "open") == 2
    assert site.limit_of("conns")["admitted"] == 3


def test_who_is_exempt(ipv4):
    ipv4.world.keep()
    ipv4.weir("detach", "web")
    ipv4.attach(*NO_PROXY, "--xdp", "generic", "--syn-cookies", "xdp", "--exempt-source", ipv4.place.client_address)
    always(ipv4)
    assert connects(ipv4, 3) == 3
    assert BY_XDP not in attempts(ipv4)
    explained = ipv4.weir("explain", "--connection", "--source", ipv4.place.client_address)
    assert "IN A FLOOD of SYNs, its SYN is answered by the kernel" in explained


def test_pause(ipv4):
    always(ipv4)
    connect(ipv4).close()
    eventually(lambda: since(ipv4).get(BY_XDP) == 1, "it was answered at XDP")
    ipv4.weir("pause")
    assert connects(ipv4, 3) == 3
    ipv4.weir("resume")
    ipv4.weir("dry-run", "web", "on")
    assert connects(ipv4, 3) == 3
    assert since(ipv4)[BY_XDP] == 1


def test_without_a_flood(site):
    """The queue has room: the kernel answers."""
    assert connects(site, 5) == 5
    assert BY_XDP not in attempts(site)


def test_where_it_cannot_be(world):
    """Status says so, and the kernel sends cookies as ever."""
    site = world.site(world.veth())
    site.attach(*NO_PROXY, "--xdp", "native", "--syn-cookies", "xdp")
    always(site)
    connect(site).close()
    assert BY_XDP not in attempts(site)
    assert "SYN cookies on eth0 are sent by the kernel: in native mode a veth may lose what is sent back" in site.weir("status")
    world.keep()
    site.weir("detach", "web")
    site.attach(*NO_PROXY, "--xdp", "off", "--syn-cookies", "xdp")
    assert "SYN cookies on eth0 are sent by the kernel: no program at XDP" in site.weir("status")
    world.keep()
    site.weir("detach", "web")
    site.attach(*NO_PROXY, "--xdp", "generic", "--syn-cookies", "xdp")
    assert "SYN cookies" not in site.weir("status")


def test_words(world):
    site = world.site(world.veth())
    assert "kernel or xdp" in site.weir.refused("attach", "web", "--port", 80, "--syn-cookies", "tc", status=2)
    policy = world.directory / "api.yaml"
    spec = f"""
apiVersion: weir/v1
kind: Throttle
metadata: {{name: web}}
spec:
  listen: ["*:{site.server.port}"]
  netns: {site.place.server_ns.path}
  xdp: generic
  synCookies: """
    for word in "xdp", "kernel":
        policy.write_text(spec + word + "\n")
        site.weir("apply", "-f", policy)
        assert site.status()["syn_cookies"] == word
    policy.write_text(spec + "xdp\n")
    site.weir("apply", "-f", policy)
    assert "synCookies: xdp" in site.weir("export")


@pytest.mark.alone
def test_a_flood(world):
    """
    A million addresses, and a good neighbour: the kernel's own rule says when the flood begins. Nobody's limit is used up, no table is
    filled, and all the neighbour's connects succeed.
    """
    site = world.site(world.veth())
    site.attach(*NO_PROXY, "--xdp", "generic", "--syn-cookies", "xdp")
    neighbour_connects_in_a_flood(site)
    assert attempts(site)[BY_XDP] > FLOOD / 2
    assert site.status()["connections"] <= 20
    site.weir.kill()
    site.weir("uninstall", "--force")
    with site.place.client_ns.entered(), contextlib.closing(socket.create_connection((site.place.address, site.server.port), 20)):
        pass
