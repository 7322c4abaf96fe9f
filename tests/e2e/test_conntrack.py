# SPDX-License-Identifier: GPL-2.0
"""Loopback under conntrack sees both sequence spaces of a translated connection: there a 429 closes."""
import pytest

from lib.process import eventually

STRICT = """
table inet strict {
    chain input { type filter hook input priority 0; ct state invalid counter drop; }
    chain output { type filter hook output priority 0; ct state invalid counter drop; }
}
"""


@pytest.fixture(params=[4, 6])
def strict(request, world):
    """Loopback where conntrack drops what it does not understand."""
    place = world.loopback(request.param)
    try:
        place.server_ns.run("nft", "-f", "-", input=STRICT)
    except AssertionError as why:
        pytest.skip(f"no conntrack here: {why}")
    return place


def check_lesser_mode(site):
    """A 429 comes with a close; the next connection works, and nothing hangs."""
    for _ in range(3):
        client = site.client()
        answer = client.exchange("/refused")
        assert (answer.status, answer.fields["connection"]) == (429, "close")
        client.expect_end()
        client.close()
    assert site.client().get("/livez") == 200


def test_loopback(world, strict):
    site = world.site(strict)
    site.attach()
    loopback = site.status()["loopback"]
    assert (loopback["mode"], loopback["why"]) == ("close", "conntrack tracks loopback")
    assert "closes its connection" in site.weir("status")
    site.limit("user", burst=2)
    client = site.client()
    assert client.drive(2) == [200, 200]
    answer = client.exchange("/refused")
    assert (answer.status, answer.fields["connection"]) == (429, "close")
    client.expect_end()
    check_lesser_mode(site)
    site.check(passed=2, shed=4, exempt=1)


def test_conntrack_comes_later(world):
    """The agent looks again from time to time."""
    site = world.site()
    site.attach()
    site.limit("user", burst=0)
    assert site.client().drive(2) == [429, 429]
    try:
        site.place.server_ns.run("nft", "-f", "-", input=STRICT)
    except AssertionError as why:
        pytest.skip(f"no conntrack here: {why}")
    eventually(lambda: site.status()["loopback"]["mode"] == "close", "the agent has seen conntrack")
    check_lesser_mode(site)


def test_asked_to_close(world):
    site = world.site()
    site.attach("--loopback", "close")
    assert site.status()["loopback"] == {"asked": "close", "mode": "close", "why": "asked for"}
    site.limit("user", burst=0)
    check_lesser_mode(site)


def test_veth_is_translated_all_the_same(world):
    """conntrack in both namespaces of a veth pair sees nothing invalid."""
    place = world.veth()
    for namespace in place.server_ns, place.client_ns:
        try:
            namespace.run("nft", "-f", "-", input=STRICT)
        except AssertionError as why:
            pytest.skip(f"no conntrack here: {why}")
    site = world.site(place)
    site.attach()
    site.limit("user", burst=0)
    client = site.client()
    for i in range(5):
        assert client.drive(2, f"/{i}") == [429, 429]
        assert client.get(f"/livez/{i}?size=200000") == 200
    client.end_of_requests()
    client.expect_end()
    site.check(passed=0, shed=10, exempt=5)
    for namespace in place.server_ns, place.client_ns:
        assert "packets 0 " in namespace.run("nft", "list", "chain", "inet", "strict", "input")
