# SPDX-License-Identifier: GPL-2.0
"""Connections that are refused at XDP: exactly those that tc would refuse, each counted once; and whose program is where."""
import contextlib
import json
import os
import random
import socket
import threading
import time

import pytest

from lib.bpf import XDP, passing_program, xdp_link
from lib.flood import flood
from lib.netns import Place, add_addresses
from lib.process import eventually
from test_links import make_device
from test_admission import (NO_PROXY, RATE, attempts, connect, connects, dry_run_and_pause, limit,
                            taken)

pytestmark = pytest.mark.together

FLOOD = int(os.environ.get("FLOOD", 30_000))  # SYNs


@pytest.fixture(params=["generic", "native"])
def mode(request):
    return request.param


@pytest.fixture(params=[4, 6])
def site(world, mode, request):
    site = world.site(world.veth(request.param))
    site.attach(*NO_PROXY, "--xdp", mode)
    assert xdp_of(site) == {"lo": "none", "eth0": mode}
    return site


@pytest.fixture
def generic(world):
    site = world.site(world.veth())
    site.attach(*NO_PROXY, "--xdp", "generic")
    return site


def xdp_of(site):
    return {link["name"]: link["xdp"] for link in site.status()["links"] if link["attached"]}


def why(site, device="eth0"):
    (link,) = [link for link in site.status()["links"] if link["name"] == device]
    return link["xdp_why"]


def program(site):
    """The id of the one at XDP."""
    (link,) = json.loads(site.place.server_ns.ip("-j", "link", "show", "eth0"))
    return link["xdp"]["prog"]["id"] if "xdp" in link else None


def dropped(site):
    return site.packets("xdp_dropped")


def test_rate(site):
    limit(site, "--key", "source", *RATE, "--burst", 3)
    assert connects(site, 5) == 3
    assert attempts(site)["admitted"] == site.limit_of("conns")["admitted"] == 3
    # Each refused SYN was dropped here, and tc has seen none of them.
    assert attempts(site) == {"admitted": 3, "dropped": dropped(site)}
    assert site.limit_of("conns")["refused"] == dropped(site) >= 2


def test_open(site):
    limit(site, "--key", "source", "--open", 2)
    first = connect(site)
    connect(site)
    assert connect(site) == "timeout"
    assert dropped(site) and taken(site) == 2
    first.close()
    eventually(lambda: taken(site) == 1, "its seat is free")
    assert isinstance(connect(site), socket.socket)
    assert attempts(site)["admitted"] == 3


@pytest.mark.alters
@pytest.mark.parametrize("tags", [(5,), (7, 5)], ids=["VLAN", "QinQ"])
@pytest.mark.parametrize("where", ["in the frame", "beside it"])
def test_vlans(world, mode, tags, where):
    """
    Tags stand in the frame, or the device has taken the first one off. Of two, XDP in the driver then sees the second alone, which
    leads to no device: tc refuses. In generic mode the VLAN's own device has the program, too.
    """
    ends = world.veth()
    below = "eth0"
    for n, tag in enumerate(tags):
        kind = ["proto", "802.1ad"] if tag == 7 else []
        for namespace in ends.server_ns, ends.client_ns:
            make_device(namespace, f"over{n}", "link", below, "type", "vlan", *kind, "id", str(tag))
        below = f"over{n}"
    if where == "in the frame":
        ends.client_ns.run("ethtool", "-K", "eth0", "txvlan", "off", "tx-vlan-stag-hw-insert", "off")
    site = world.site(Place(ends.server_ns, ends.client_ns, *add_addresses(ends.server_ns, ends.client_ns, 4, 8, below)))
    site.attach(*NO_PROXY, "--xdp", mode)
    limit(site, "--key", "source", *RATE, "--burst", 3)
    assert connects(site, 5) == 3
    refused = site.limit_of("conns")["refused"]
    assert refused >= 2
    assert attempts(site) == {"admitted": 3, "dropped": refused}
    assert dropped(site) == (0 if (mode, tags, where) == ("native", (7, 5), "beside it") else refused)


@pytest.mark.alters
def test_jumbo_frames(world):
    """In the driver a frame of 9000 bytes is in several pieces."""
    ends = world.veth()
    for namespace, device in ends.devices():
        namespace.ip("link", "set", device, "mtu", "9000")
    site = world.site(ends)
    site.attach(*NO_PROXY, "--xdp", "native")
    assert xdp_of(site)["eth0"] == "native"
    site.limit("user", burst=2)
    with contextlib.closing(site.client()) as client:
        assert [client.exchange(f"/{n}", "POST", b"x" * 8000).status for n in range(4)] == [200, 200, 429, 429]
    limit(site, "--key", "source", *RATE, "--burst", 3)
    assert connects(site, 5) == 3
    refused = site.limit_of("conns")["refused"]
    assert refused >= 2
    assert attempts(site)["dropped"] == dropped(site) == refused


@pytest.mark.parametrize("where", ["off", "generic"])
def test_the_heavy_ones_of_a_flood(world, where):
    """A flood from a million addresses that is refused: `weir top` has those who send most of it, rightly counted."""
    site = world.site(world.veth())
    site.attach(*NO_PROXY, "--xdp", where)
    limit(site, "--key", "total", "--connections", "--deny", "--source", "172.16.0.0/12", name="blocklist")
    heavy = {f"172.31.255.{n}": FLOOD // 100 for n in range(1, 6)}
    numbers = random.Random(1)
    sources = [network("172.16.0.0") + numbers.randrange((1 << 20) - 256) for _ in range(FLOOD)]
    sources += [network(address) for address, n in heavy.items() for _ in range(n)]
    numbers.shuffle(sources)
    flood(site.place.client_ns, site.place, site.server.port, sources)
    eventually(lambda: attempts(site) == {"dropped": len(sources)}, "each was refused")
    rows = world.weir.json("top", "--once", "--interval", "100ms", "--by", "connection")["rows"]
    seen = {row["source"]: (row["requests"], row["refused"]) for row in rows[:len(heavy)]}
    assert seen.keys() == heavy.keys()
    for address, (asked, refused) in seen.items():
        assert heavy[address] * 0.95 <= asked == refused <= heavy[address]


def test_requests_pass(site):
    limit(site, "--key", "source", *RATE, "--burst", 2)
    site.limit("user", burst=3)
    with contextlib.closing(site.client()) as client:
        assert client.drive(4) == [200] * 3 + [429]
        assert client.get("/r?size=100000") == 429


def test_a_refusal_takes_nothing(generic):
    limit(generic, "--key", "source", *RATE, "--burst", 1)
    limit(generic, "--key", "total", *RATE, "--burst", 2, name="all")
    generic.world.address(generic.place.client_ns, "10.9.7.3/24")
    assert connects(generic, 3) == 1
    assert generic.limit_of("all")["admitted"] == 1
    assert connects(generic, 1, source="10.9.7.3") == 1


def test_reset_is_for_tc(generic):
    limit(generic, "--key", "source", *RATE, "--burst", 1, "--over", "reset")
    assert isinstance(connect(generic), socket.socket)
    assert connect(generic) == "ECONNREFUSED"
    assert attempts(generic) == {"admitted": 1, "reset": 1}
    assert generic.limit_of("conns")["refused"] == 1


def test_cookies(generic):
    generic.world.setting(generic.place.server_ns, "net.ipv4.tcp_syncookies", 2)
    limit(generic, "--key", "source", *RATE, "--burst", 2)
    assert connects(generic, 4) == 2
    assert attempts(generic) == {"syn_cookie": 2, "admitted": 2, "dropped": dropped(generic)}


def test_dry_run_and_pause(generic):
    dry_run_and_pause(generic, "drop", "timeout")
    assert dropped(generic)


def test_the_agent_dead(generic):
    limit(generic, "--key", "source", *RATE, "--burst", 1)
    assert connects(generic, 1) == 1
    before = program(generic)
    generic.weir.kill()
    assert connect(generic) == "timeout"
    generic.weir.start()
    assert xdp_of(generic)["eth0"] == "generic"
    assert program(generic) != before  # the new agent's, on the same link
    seen = dropped(generic)
    assert connect(generic) == "timeout"
    assert dropped(generic) > seen


@pytest.mark.alone  # where native mode is in force, auto leaves it there
def test_auto_leaves_a_veth_alone(world):
    site = world.site(world.veth())
    site.attach(*NO_PROXY)
    assert xdp_of(site)["eth0"] == "none" and "virtual" in why(site)
    probed = site.weir.run("probe", "--netns", site.place.server_ns.path).stdout
    assert why(site) in probed and f"no: {why(site)}" in site.weir("status", "web")
    limit(site, "--key", "source", *RATE, "--burst", 1)
    assert connects(site, 2) == 1 and not dropped(site)


def test_servers_that_ask_for_less(world):
    """The device has what most asks for; a server that is off there is limited at tc."""
    site = world.site(world.veth())
    site.attach(*NO_PROXY, "--xdp", "off")
    assert program(site) is None
    other = world.echo(site.place)
    site.weir("attach", "other", "--port", other.port, "--netns", site.place.server_ns.path, "--xdp", "generic")
    assert xdp_of(site)["eth0"] == "generic"
    limit(site, "--server", "web", "--key", "source", *RATE, "--burst", 1)
    assert connects(site, 2) == 1 and not dropped(site)
    site.weir("detach", "other")
    assert program(site) is None


@pytest.mark.alone
def test_somebody_elses_program(world):
    site = world.site(world.veth())
    with site.place.server_ns.entered():
        link = xdp_link(passing_program("somebody", XDP), socket.if_nametoindex("eth0"))
    theirs = program(site)
    site.attach(*NO_PROXY, "--xdp", "native")
    assert xdp_of(site)["eth0"] == "none" and "somebody" in why(site)
    assert program(site) == theirs
    probed = json.loads(site.weir.run("probe", "--netns", site.place.server_ns.path, "--json").stdout)
    (device,) = [device for device in probed["devices"] if device["name"] == "eth0"]
    assert [(x["program"], x["by"], x["weir"]) for x in device["xdp"]] == [("somebody", "generic", False)]
    assert "generic: somebody" in site.weir.run("probe", "--netns", site.place.server_ns.path).stdout
    limit(site, "--key", "source", *RATE, "--burst", 1)
    assert connects(site, 2) == 1
    os.close(link)
    site.place.server_ns.ip("link", "set", "eth0", "alias", "x")  # the next change of a device
    eventually(lambda: xdp_of(site)["eth0"] == "native", "it is free")


@pytest.mark.alone
def test_uninstall(generic):
    """Everything is open at once."""
    limit(generic, "--key", "total", *RATE, "--burst", 0)
    assert connect(generic) == "timeout" and dropped(generic)
    generic.weir.kill()
    generic.weir("uninstall", "--force")
    assert program(generic) is None
    assert connects(generic, 3) == 3


def test_words(world):
    site = world.site(world.veth())
    refused = site.weir.refused
    assert "off, auto, generic or native" in refused("attach", "web", "--port", 80, "--xdp", "fast", status=2)
    policy = world.directory / "api.yaml"
    policy.write_text(f"""
apiVersion: weir/v1
kind: Throttle
metadata: {{name: web}}
spec:
  listen: ["*:{site.server.port}"]
  netns: {site.place.server_ns.path}
  xdp: generic
""")
    site.weir("apply", "-f", policy)
    assert xdp_of(site)["eth0"] == "generic"
    assert "xdp: generic" in site.weir("export")


def test_penalties_end_by_themselves(generic):
    """Who goes on while refused is kept out until its penalty is over, agent or none."""
    penalty_s = 3  # without it a connection a second is let in
    generic.weir("limit", "set", "conns", "--key", "source", "--connections", "--qps", 1, "--burst", 1,
                 "--penalty", f"exponential:{penalty_s}s..{penalty_s}s")
    generic.weir.kill()
    admitted = True
    while admitted:
        before = time.monotonic()
        admitted = connects(generic, 2) == 2
    eventually(lambda: isinstance(connect(generic), socket.socket), "the penalty is over")
    assert time.monotonic() - before >= penalty_s
    generic.weir.start()
    assert dropped(generic)


@pytest.mark.parametrize("family", [4, 6])
def test_the_box_of_an_address(world, family):
    """Who asks again before the penalty is over is held until then, agent or none. A first refusal is only told."""
    site = world.site(world.veth(family))
    site.attach(*NO_PROXY, "--xdp", "generic")
    penalty_s = 40  # all below but the last is over before, on a slow machine, too
    site.weir("limit", "set", "hasty", "--key", "source", "--qps", 1 / penalty_s, "--burst", 1, "--penalty",
              f"exponential:{penalty_s}s..{penalty_s}s")
    client = site.client()
    assert client.drive(2) == [200, 429]
    assert isinstance(connect(site), socket.socket)
    assert client.get("/again") == 429
    assert connect(site) == "timeout"
    site.weir.kill()
    client.ask("/late")
    assert connect(site) == "timeout"
    assert not client.readable(0.4)
    eventually(lambda: isinstance(connect(site), socket.socket), "the penalty is over")
    assert client.check(client.read(), "/late") == 200
    site.weir.start()
    assert site.packets("boxed") >= 3


def test_no_box_of_a_limit_with_rules(world):
    """XDP does not know what a request is for: what the limit is not for would wait, too."""
    site = world.site(world.veth())
    site.attach(*NO_PROXY, "--xdp", "generic")
    site.weir("limit", "set", "secrets", "--key", "source", "--resource", "secrets", "--qps", 0.01, "--burst", 1, "--penalty",
              "exponential:100s..100s")
    client = site.client()
    assert [client.get("/api/v1/secrets") for _ in range(4)] == [200, 429, 429, 429]
    assert isinstance(connect(site), socket.socket)
    assert client.get("/api/v1/pods") == 200
    assert site.packets("boxed") == 0


def test_a_box_hears_of_all_in_a_packet(world):
    """Of those, too, whose requests are never the last of theirs."""
    tokens = world.directory / "tokens.csv"
    tokens.write_text("first,alice,1\nsecond,bob,2\n")
    site = world.site(world.veth())
    site.attach(*NO_PROXY, "--xdp", "generic", "--token-file", tokens)
    site.limit("user", burst=1)
    site.weir("limit", "set", "user", "--penalty", "exponential:100s..100s")
    client = site.client()
    assert client.drive(2, Authorization="Bearer first") == [200, 429]
    client.send(client.head("/b", Authorization="Bearer second") + client.head("/a", Authorization="Bearer first"))
    assert [client.check(client.read(), path, last=path == "/a") for path in ("/b", "/a")] == [200, 429]
    assert client.get("/a", Authorization="Bearer first") == 429
    assert isinstance(connect(site), socket.socket)
    assert site.packets("boxed") == 0


@pytest.mark.parametrize("others", [False, True], ids=["alone", "with others"])
def test_the_box_of_a_user(world, others):
    """Only while nobody else is known to ask from its address."""
    tokens = world.directory / "tokens.csv"
    tokens.write_text("first,alice,1\nsecond,bob,2\n")
    site = world.site(world.veth())
    site.attach(*NO_PROXY, "--xdp", "generic", "--token-file", tokens)
    site.limit("user", burst=1)
    site.weir("limit", "set", "user", "--penalty", "exponential:100s..100s")
    client = site.client()
    if others:
        assert client.get("/b", Authorization="Bearer second") == 200
    assert client.drive(3, Authorization="Bearer first") == [200, 429, 429]
    if others:
        assert client.get("/b", Authorization="Bearer first") == 429
        assert isinstance(connect(site), socket.socket)
        return
    client.ask("/late", Authorization="Bearer first")
    eventually(lambda: site.packets("boxed") > 0, "what it sends is held")
    assert connect(site) == "timeout"
    site.weir("pause")
    assert isinstance(connect(site), socket.socket)
    site.weir("resume")
    assert connect(site) == "timeout"
    site.weir("limit", "set", "user", "--penalty", "off")
    assert isinstance(connect(site), socket.socket)


@pytest.mark.parametrize("where", ["off", "generic"])
def test_lists(world, where):
    """Networks that may not connect, and exceptions among them: the longest prefix counts. Changed while it runs."""
    place = world.veth()
    for host in range(3, 6):
        world.address(place.client_ns, f"10.9.7.{host}/24")
    table = world.directory / "addresses.csv"
    rows = [f"172.{16 + n // 65536}.{n // 256 % 256}.{n % 256}/32,blocked,,\n" for n in range(100_000)]
    table.write_text("".join(rows) + "10.9.7.0/24,blocked,,\n10.9.7.2/31,welcome,,\n10.9.7.4/32,partner,,\n")
    site = world.site(place)
    site.attach(*NO_PROXY, "--address-file", table, "--exempt-user", "welcome", "--xdp", where)
    limit(site, "--key", "total", "--connections", "--deny", "--for-user", "blocked", name="blocklist")
    assert [connects(site, 1, source=f"10.9.7.{host}") for host in range(2, 6)] == [1, 1, 1, 0]
    assert bool(dropped(site)) == (where == "generic")
    assert site.limit_of("blocklist")["refused"] == attempts(site)["dropped"]
    table.write_text("".join(rows) + "10.9.7.2/31,blocked,,\n")
    site.weir("reload")
    assert [connects(site, 1, source=f"10.9.7.{host}") for host in range(2, 6)] == [0, 0, 1, 1]


@pytest.mark.parametrize("where", ["off", "generic"])
def test_a_list_changes_without_a_pause(world, where):
    """A hundred thousand networks: who is on both lists is refused all the while, who is on none is let in, and no packet gets through."""
    place = world.veth()
    world.address(place.client_ns, "10.9.7.9/24")
    table = world.directory / "addresses.csv"

    def write(first):
        rows = [f"172.{first + n // 65536}.{n // 256 % 256}.{n % 256}/32,blocked,,\n" for n in range(100_000)]
        table.write_text("".join(rows) + "10.9.7.9/32,blocked,,\n")
    write(16)
    site = world.site(place)
    site.attach(*NO_PROXY, "--address-file", table, "--xdp", where)
    limit(site, "--key", "total", "--connections", "--deny", "--for-user", "blocked", name="blocklist")
    changing = threading.Event()
    admitted = []

    def sends():
        blocked = [network("10.9.7.9")] * 500
        while not changing.is_set():
            flood(place.client_ns, place, site.server.port, blocked)
            admitted.append(connects(site, 1))
    sender = threading.Thread(target=sends)
    sender.start()
    try:
        for first in 20, 16, 24:
            write(first)
            site.weir("reload")
    finally:
        changing.set()
        sender.join()
    n = len(admitted)
    assert n > 3
    assert admitted == [1] * n
    eventually(lambda: attempts(site) == {"admitted": n, "dropped": 500 * n}, "each of the blocked was refused")
    assert connects(site, 1, source="10.9.7.9") == 0


def network(text):
    return int.from_bytes(socket.inet_aton(text), "big")


def test_a_flood_that_is_blocked(generic):
    """Every SYN of it ends at XDP: the server's kernel knows of none."""
    limit(generic, "--key", "total", "--connections", "--deny", "--source", "172.16.0.0/12", name="blocklist")
    sources = [network("172.16.0.0") + n * 37 % (1 << 20) for n in range(5000)]
    assert flood(generic.place.client_ns, generic.place, generic.server.port, sources) == 5000
    eventually(lambda: dropped(generic) == 5000, "all were dropped")
    assert attempts(generic) == {"dropped": 5000}
    assert generic.limit_of("blocklist")["refused"] == 5000
    assert connects(generic, 1) == 1


def neighbour_connects_in_a_flood(site):
    """
    A million addresses that never answer, some SYNs in the name of a good neighbour: all the neighbour's connects succeed, and
    nobody's limit is used up by the flood.
    """
    limit(site, "--key", "source", "--connections", "--qps", 0, "--burst", 20)
    site.place.server_ns.ip("route", "add", "default", "via", site.place.client_address)  # or nobody would be answered
    numbers = random.Random(1)
    sources = [network("172.16.0.0") + numbers.randrange(1 << 20) for _ in range(FLOOD)]
    sources[::10] = [network(site.place.client_address)] * len(sources[::10])
    attacker = threading.Thread(target=flood, args=(site.place.client_ns, site.place, site.server.port, sources))
    attacker.start()
    try:
        for _ in range(20):
            with site.place.client_ns.entered():
                neighbour = socket.create_connection((site.place.address, site.server.port), 20)
            neighbour.close()
    finally:
        attacker.join()
    eventually(lambda: attempts(site)["admitted"] == 20, "all were admitted")
    assert site.limit_of("conns")["admitted"] == 20


@pytest.mark.alone
@pytest.mark.parametrize("where", ["off", "generic"])
def test_a_flood_from_everywhere(world, where):
    """Sources that never answer use up nobody's limit, not even those that bear a neighbour's address. It connects all the while."""
    site = world.site(world.veth())
    site.attach(*NO_PROXY, "--xdp", where)
    neighbour_connects_in_a_flood(site)
    assert attempts(site)["syn_cookie"] > 0
