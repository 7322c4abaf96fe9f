# SPDX-License-Identifier: GPL-2.0
"""What stands before the TCP header does not hide a request: it is read, or it does not come to the server."""
import time
from pathlib import Path

import pytest

from lib.netns import Place
from lib.process import eventually
from lib.raw import DESTINATION, HOP_BY_HOP, ROUTING, RawClient, RawClient6, with_extensions

pytestmark = pytest.mark.together

BURST = 2
READ_MAX = 32  # extension headers
DECOY = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 999999\r\n\r\n"

needs_hold = pytest.mark.skipif("cgroup2" not in Path("/proc/mounts").read_text(), reason="no cgroup2 is mounted")


def get(path):
    return b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode()


def raw_client(world, family, kind):
    site = world.site(world.veth(family))
    site.attach()
    site.limit("user", burst=BURST)
    client = kind(site.place, site.server.port)
    world.at_end(client.close)
    return site, client


@pytest.fixture
def raw6(world):
    return raw_client(world, 6, RawClient6)


@pytest.fixture
def raw4(world):
    return raw_client(world, 4, RawClient)


@pytest.mark.parametrize("kinds", [[DESTINATION], [HOP_BY_HOP, DESTINATION, ROUTING], [DESTINATION] * 5,
                                   [DESTINATION] * (READ_MAX - 1), [DESTINATION] * READ_MAX], ids=len)
def test_extension_headers(raw6, kinds):
    site, client = raw6
    for i in range(BURST + 2):
        assert client.insist(get(f"{i}"), spoil=with_extensions(kinds))
    assert client.stream.count(b"HTTP/1.1 429 ") == 2
    site.check(passed=BURST, shed=2)
    assert site.unread() == {}


@needs_hold
@pytest.mark.parametrize("kinds", [[DESTINATION] * (READ_MAX + 1), [DESTINATION] * 100,
                                   [HOP_BY_HOP] + [DESTINATION] * READ_MAX], ids=len)
def test_more_than_are_read(raw6, kinds):
    """No server gets a packet in which no TCP header was found."""
    site, client = raw6
    check_nothing_comes(site, client, with_extensions(kinds))


@needs_hold
@pytest.mark.parametrize("kinds", [[HOP_BY_HOP], [HOP_BY_HOP, DESTINATION]], ids=len)
def test_length_is_left_out(raw6, kinds):
    """As in a jumbogram, but it is none."""
    site, client = raw6
    check_nothing_comes(site, client, with_extensions(kinds, jumbogram=True))


def check_nothing_comes(site, client, spoil):
    for _ in range(3):
        assert not client.insist(get("never"), times=2, spoil=spoil)
    assert site.server.served() == 0
    assert site.packets("unreadable") == 6
    # The connection goes on.
    for i in range(BURST + 1):
        assert client.insist(get(f"{i}"))
    site.check(passed=BURST, shed=1)


def tagged(*tags):
    """With VLAN tags that name no VLAN; behind the first, the kernel takes them off without tc."""
    def spoil(frame):
        frame[12:12] = b"".join(tags)
    return spoil


def another_mac(frame):
    frame[5] ^= 1


CUSTOMER, SERVICE = b"\x81\x00\x00\x00", b"\x88\xa8\x00\x00"
TAGS = {"two": [SERVICE, CUSTOMER], "two_of_a_kind": [CUSTOMER, CUSTOMER], "three": [SERVICE, CUSTOMER, CUSTOMER]}


def test_one_tag_is_read(raw4):
    site, client = raw4
    for i in range(BURST + 1):
        assert client.insist(get(f"{i}"), spoil=tagged(CUSTOMER))
    site.check(passed=BURST, shed=1)


@needs_hold
@pytest.mark.parametrize("tags", TAGS)
def test_tags(raw4, tags):
    site, client = raw4
    for i in range(BURST + 3):
        client.insist(get(f"{i}"), times=4, spoil=tagged(*TAGS[tags]))
    assert site.server.served() <= BURST
    assert site.packets("stray") > 0


@needs_hold
@pytest.mark.parametrize("tags", TAGS)
def test_decoy_and_tags(raw4, tags):
    """Other bytes take the place of what was read and never came to the server, by a way on which they are not read."""
    site, client = raw4
    body = DECOY + b"z" * 1000
    many = get("many") * (len(body) // len(get("many")))
    assert client.insist(get("first"))
    client.send(body, spoil=another_mac)
    time.sleep(0.15)
    client.insist(many, times=6, spoil=tagged(*TAGS[tags]))
    assert site.server.served() <= BURST
    assert site.packets("stray") > 0


class SilentClient(RawClient):
    """Its first data ends the handshake."""

    def handshake(self):
        self.receive()
        self.next += bool(self.peer)
        return self.peer


@needs_hold
@pytest.mark.parametrize("how", [{"fragments": 64}, *({"spoil": tagged(*tags)} for tags in TAGS.values())],
                         ids=["fragments", *TAGS])
def test_only_other_interfaces_are_free(world, how):
    """Where one interface is meant, what comes by it and cannot be read is not taken for what came by another."""
    site = world.site(world.veth())
    site.attach("--interface", "eth0")
    site.limit("user", burst=BURST)
    client = SilentClient(site.place, site.server.port)
    world.at_end(client.close)
    for i in range(BURST + 3):
        client.insist(get(f"{i}"), times=4, **how)
    assert 0 < site.server.served() <= BURST


@needs_hold
def test_strays_between_others(raw4):
    """They do not come to the server, and change nothing."""
    site, client = raw4
    for i in range(BURST):
        for _ in range(2):
            client.send(get("stray"), spoil=tagged(*TAGS["two"]))
        assert client.insist(get(f"{i}"))
    assert client.insist(get("refused"))
    site.check(passed=BURST, shed=1)
    assert site.packets("stray") == 2 * BURST
    assert site.unread() == {}


SEGMENT = "fd00:70::1"


@pytest.fixture
def routed(world):
    """A server at an address to which its clients' packets come by way of another of its addresses (SRv6)."""
    place = world.veth(6)
    for device in "all", "eth0":
        world.setting(place.server_ns, f"net.ipv6.conf.{device}.seg6_enabled", 1)
    world.address(place.server_ns, f"{SEGMENT}/128", "lo")
    route = "route", "add", f"{place.address}/128", "encap", "seg6", "mode", "inline", "segs", SEGMENT, "dev", "eth0"
    try:
        place.client_ns.ip("-6", "route", "add", SEGMENT, "via", place.address)
        world.at_end(place.client_ns.ip, "-6", "route", "del", SEGMENT)
        place.client_ns.ip("-6", *route)
        world.at_end(place.client_ns.ip, "-6", "route", "del", f"{place.address}/128")
    except AssertionError as why:
        pytest.skip(f"no SRv6 here: {why}")
    return world.site(place, world.echo(Place(place.server_ns, place.server_ns, "::", "::")))


@needs_hold
@pytest.mark.parametrize("options", [(), ("--interface", "eth0")], ids=["all", "one"])
def test_a_route_with_segments_left(routed, options):
    """Its destination on the wire is not the connection's. The kernel puts that in behind weir, so such packets are held."""
    routed.attach(*options)
    routed.limit("user", burst=BURST)
    client = routed.client()
    assert client.drive(BURST) == [200] * BURST
    client.ask("/held")
    eventually(lambda: routed.packets("held_record") > 0, "the next one is withheld")
    assert routed.server.served() == BURST
    assert routed.unread() == {"unseen": 1}
