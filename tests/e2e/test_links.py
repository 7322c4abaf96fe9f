# SPDX-License-Identifier: GPL-2.0
"""Interfaces come, go and stand on top of each other: each packet is handled exactly once."""
import json
import socket

import pytest

from lib import netns
from lib.netns import Place
from lib.process import eventually
from lib.weir import Weir
from test_admission import connect


pytestmark = pytest.mark.together


def attached(site):
    return {link["name"] for link in site.status()["links"] if link["attached"]}


def check_once(site, client=None):
    """Two pass and three do not, and each is counted once."""
    before = site.weir.counts()
    client = client or site.client()
    assert client.drive(5) == [200, 200, 429, 429, 429]
    assert client.get("/livez?size=100000") == 200
    after = site.weir.counts()
    assert (after["passed"] - before["passed"], after["shed"] - before["shed"]) == (2, 3)


def one_more(world, server_ns, client_ns, subnet, device):
    """Another veth pair, until the test ends, as a place."""
    addresses = netns.add_veth(server_ns, client_ns, 4, subnet, device)
    world.at_end(server_ns.ip, "link", "del", device)
    return Place(server_ns, client_ns, *addresses)


def test_come_and_go(world):
    home = world.veth()
    server_ns, client_ns = home.server_ns, home.client_ns
    site = world.site(Place(server_ns, client_ns, "0.0.0.0", "0.0.0.0/0"))
    site.attach()
    site.limit("user", burst=2)
    assert attached(site) == {"lo", "eth0"}
    for subnet in range(1, 4):
        addresses = netns.add_veth(server_ns, client_ns, 4, subnet, "eth1")
        eventually(lambda: attached(site) == {"lo", "eth0", "eth1"}, "the new interface is attached")
        site.place = Place(server_ns, client_ns, *addresses)
        check_once(site)
        server_ns.ip("link", "del", "eth1")
        eventually(lambda: attached(site) == {"lo", "eth0"}, "the interface is forgotten")
    site.check(passed=6, shed=9, exempt=3)


def test_interfaces_that_came_without_an_agent(world):
    home = world.veth()
    site = world.site(Place(home.server_ns, home.client_ns, "0.0.0.0", "0.0.0.0/0"))
    site.attach()
    site.limit("user", burst=2)
    site.weir.kill()
    site.place = one_more(world, home.server_ns, home.client_ns, 1, "eth1")
    site.weir.start()
    assert attached(site) == {"lo", "eth0", "eth1"}
    check_once(site)


def test_only_the_named_interface(world):
    home = world.veth()
    watched = one_more(world, home.server_ns, home.client_ns, 1, "eth1")
    other = one_more(world, home.server_ns, world.namespace("o"), 2, "eth2")
    server = world.echo(Place(home.server_ns, home.server_ns, "0.0.0.0", "0.0.0.0"))
    site = world.site(watched, server)
    site.attach("--interface", "eth1")
    site.limit("user", burst=2)
    assert attached(site) == {"eth1"}
    check_once(site)
    site.place = other
    assert site.client().drive(5) == [200] * 5
    assert site.weir.counts()["passed"] == 2


@pytest.fixture
def routed(world):
    """A place whose server's end is a router, and its client's way to a server behind that."""
    near = world.veth()
    router_ns, client_ns, server_ns = near.server_ns, near.client_ns, world.namespace("s")
    far = netns.add_veth(server_ns, router_ns, 4, 2, "eth1")
    world.at_end(router_ns.ip, "link", "del", "eth1")
    client_ns.ip("route", "add", "default", "via", near.address)
    world.at_end(client_ns.ip, "route", "del", "default")
    server_ns.ip("route", "add", "default", "via", far[1])
    world.setting(router_ns, "net.ipv4.ip_forward", 1)
    return near, Place(server_ns, client_ns, far[0], near.client_address)


@pytest.mark.parametrize("xdp", ["off", "generic"])
@pytest.mark.parametrize("address", ["its own address", "any address"])
def test_routed_past(world, routed, address, xdp):
    """A router that happens to run a server on the same port, on its own address or on any: what goes to others is theirs."""
    near, passing = routed
    own = world.site(near, world.echo(Place(near.server_ns, near.server_ns, "0.0.0.0", "0.0.0.0"))
                     if address == "any address" else None)
    own.attach("--xdp", xdp)
    own.limit("user", burst=2)
    beyond = world.site(passing, world.echo(passing, own.server.port))
    assert beyond.client().drive(6) == [200] * 6
    check_once(own)
    own.check(passed=2, shed=3, exempt=1)
    assert beyond.server.served() == 6
    own.weir("limit", "set", "nobody", "--key", "total", "--connections", "--deny")
    assert beyond.client().get("/new") == 200
    assert own.packets("xdp_dropped") == 0 and "dropped" not in own.status()["connection_attempts"]
    assert connect(own) == "timeout" and own.status()["connection_attempts"]["dropped"] > 0


def test_another_weir(world):
    """Two agents on one namespace, or what one has left there: attach and status say so until it is gone."""
    site = world.site()
    site.attach()
    assert site.status()["other_weir"] is None
    other = Weir(world.directory / "other", world.pins.with_name(world.pins.name + "-other"))
    other.state_dir.parent.mkdir()
    other.start()
    try:
        done = other.run("attach", "api", "--port", 81, "--netns", site.place.server_ns.path)
        assert done.returncode == 0 and "another weir's programs are on lo (id " in done.stderr
        other.kill()
        eventually(lambda: site.status()["other_weir"], "the agent has looked")
        text = world.weir("status")
        assert "web: warning: another weir's programs are on lo (id " in text and "WEIR_PIN_DIR" in text
        done = world.weir.run("attach", "more", "--port", 82, "--netns", site.place.server_ns.path)
        assert done.returncode == 0 and "another weir's programs are on lo (id " in done.stderr
    finally:
        other("uninstall", "--force")
    eventually(lambda: not site.status()["other_weir"], "the kernel has let go of its programs: no look of the agent's is needed", 2)
    assert "another weir" not in world.weir("status")


def make_device(namespace, name, *kind):
    try:
        namespace.ip("link", "add", *kind[:kind.index("type")], "name", name, *kind[kind.index("type"):])
    except AssertionError as why:
        pytest.skip(f"this kernel has no such device: {why}")
    namespace.ip("link", "set", name, "up")


def move_address(namespace, address, device):
    namespace.ip("addr", "flush", "dev", "eth0")
    namespace.ip("addr", "add", f"{address}/24", "dev", device)


def bridge(place):
    make_device(place.server_ns, "over", "type", "bridge")
    place.server_ns.ip("link", "set", "eth0", "master", "over")
    move_address(place.server_ns, place.address, "over")
    return {"lo", "over"}


def vlan(place):
    for namespace, address in (place.server_ns, place.address), (place.client_ns, place.client_address):
        make_device(namespace, "over", "link", "eth0", "type", "vlan", "id", "5")
        move_address(namespace, address, "over")
    return {"lo", "eth0", "over"}


def vlan_on_bridge(place):
    make_device(place.client_ns, "over", "link", "eth0", "type", "vlan", "id", "5")
    move_address(place.client_ns, place.client_address, "over")
    make_device(place.server_ns, "bridge", "type", "bridge")
    place.server_ns.ip("link", "set", "eth0", "master", "bridge")
    make_device(place.server_ns, "over", "link", "bridge", "type", "vlan", "id", "5")
    move_address(place.server_ns, place.address, "over")
    return {"lo", "bridge", "over"}


def bond(place):
    make_device(place.server_ns, "over", "type", "bond", "mode", "active-backup")
    place.server_ns.ip("link", "set", "eth0", "down")
    place.server_ns.ip("link", "set", "eth0", "master", "over")
    place.server_ns.ip("link", "set", "over", "up")
    move_address(place.server_ns, place.address, "over")
    return {"lo", "over"}


def macvlan(place):
    make_device(place.server_ns, "over", "link", "eth0", "type", "macvlan", "mode", "bridge")
    move_address(place.server_ns, place.address, "over")
    mac = json.loads(place.server_ns.ip("-j", "link", "show", "over"))[0]["address"]
    place.client_ns.ip("neigh", "replace", place.address, "lladdr", mac, "dev", "eth0")
    return {"lo", "eth0"}


@pytest.mark.alters
@pytest.mark.parametrize("accept", [0, 1])
def test_in_a_vrf(world, accept):
    """What comes to it is held, whether its server is bound to it or takes connections of all: there is no 429, and no more is served."""
    place = world.veth()
    make_device(place.server_ns, "red", "type", "vrf", "table", "10")
    world.at_end(place.server_ns.ip, "link", "del", "red")
    place.server_ns.ip("link", "set", "eth0", "master", "red")
    world.setting(place.server_ns, "net.ipv4.tcp_l3mdev_accept", accept)
    server = world.echo(Place(place.server_ns, place.server_ns, "0.0.0.0", "0.0.0.0"))
    if not accept:
        server.listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"red")
    site = world.site(place, server)
    site.attach()
    site.limit("user", burst=2)
    assert [link["how"] for link in site.status()["links"] if link["name"] == "eth0"] == ["in a VRF"]
    client = site.client()
    assert client.drive(2) == [200] * 2
    client.ask("/held")
    eventually(lambda: site.packets("held_record") >= 2, "it is held")
    assert server.served() == 2
    assert site.unread() == {"unseen": 1}


@pytest.mark.alters
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("stack", [bridge, vlan, vlan_on_bridge, bond, macvlan])
def test_stacked(world, stack, when):
    """The devices are stacked before the attach, or while it is in force."""
    place = world.veth()
    server = world.echo(Place(place.server_ns, place.server_ns, "0.0.0.0", "0.0.0.0"))
    site = world.site(place, server)
    if when == "after":
        site.attach()
    expected = stack(place)
    if when == "before":
        site.attach()
    site.limit("user", burst=2)
    eventually(lambda: attached(site) == expected, f"attached to {expected}")
    check_once(site)
    site.check(passed=2, shed=3, exempt=1)
    assert site.packets("answered") == 3


TUNNELS = {
    "vxlan": (4, "type vxlan id 7 local {here} remote {there} dstport 4789"),
    "geneve": (4, "type geneve id 7 remote {there}"),
    "gretap": (4, "type gretap local {here} remote {there}"),
    "ip6gretap": (6, "type ip6gretap local {here} remote {there}"),
}


@pytest.mark.alters
@pytest.mark.parametrize("kind", TUNNELS)
def test_tunnel_of_frames(world, kind):
    """What comes out of it is read, and 429s go back into it. The packets around it are none of the server's."""
    family, how = TUNNELS[kind]
    around = world.veth(family)
    ends = (around.server_ns, around.address), (around.client_ns, around.client_address)
    for (namespace, here), (_, there) in (ends, ends[::-1]):
        make_device(namespace, "over", *how.format(here=here, there=there).split())
    place = Place(around.server_ns, around.client_ns, *netns.add_addresses(around.server_ns, around.client_ns, 4, 9, "over"))
    site = world.site(place)
    site.attach()
    site.limit("user", burst=2)
    assert "over" in attached(site)
    check_once(site)
    site.check(passed=2, shed=3, exempt=1)
    assert site.unread() == {}
