# SPDX-License-Identifier: GPL-2.0
"""The same traffic over every kind of path: one keep-alive connection, passes and sheds mixed, bodies both ways."""
import random

import pytest

pytestmark = pytest.mark.together

ROUNDS = 60
BURST = 24

OFFLOADS = {
    "offload": (),
    "no_checksum": ("tx", "off", "rx", "off"),
    "no_segmentation": ("tso", "off", "gso", "off", "gro", "off"),
    "none": ("tx", "off", "rx", "off", "tso", "off", "gso", "off", "gro", "off", "sg", "off"),
}


def mixed_exchanges(site, client, rounds, seed):
    """Requests of every shape, so that bytes that went astray would be seen; the status of each."""
    dice = random.Random(seed)
    statuses = []
    for i in range(rounds):
        shape = dice.choice(["plain", "head", "download", "upload", "chunks"])
        if shape == "plain":
            answer = client.exchange(f"/plain/{i}")
        elif shape == "head":
            answer = client.exchange(f"/head/{i}", "HEAD")
        elif shape == "download":
            how = dice.choice(["", "&chunked=1"])
            answer = client.exchange(f"/download/{i}?size={dice.choice([1, 1460, 70_000, 1_000_000])}{how}")
        elif shape == "upload":
            answer = client.exchange(f"/upload/{i}?echo=1", "POST", dice.randbytes(dice.choice([1, 300, 900])))
        else:
            answer = client.exchange(f"/chunks/{i}?echo=1", "POST", chunks=[dice.randbytes(n) for n in (1, 200, 50)])
        statuses.append(answer.status)
    return statuses


def check_mixed(site, seed):
    """One user runs out of tokens while another one goes on, on two connections at once."""
    site.limit("user", "noisy", burst=BURST)
    noisy, quiet = site.client("noisy"), site.client("quiet")
    heard = [], []
    for part in range(3):
        heard[0].extend(mixed_exchanges(site, noisy, ROUNDS // 3, seed + part))
        heard[1].extend(mixed_exchanges(site, quiet, ROUNDS // 6, seed - part))
    assert heard[0] == [200] * BURST + [429] * (ROUNDS - BURST)
    assert set(heard[1]) == {200}
    # Large ones in both directions at once, with every number translated.
    for client in noisy, quiet:
        assert client.exchange("/livez?echo=1", "POST", bytes(range(256)) * 10_000).status == 200
    site.check(passed=BURST + len(heard[1]), shed=ROUNDS - BURST, exempt=2)
    assert not site.unanswered() and not site.unread()


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("kind", ["loopback", "veth"])
def test_mixed(world, kind, family):
    site = world.site(world.place(kind, family))
    site.attach()
    check_mixed(site, seed=family)


@pytest.mark.alters
@pytest.mark.parametrize("offload", OFFLOADS)
def test_offload(world, offload):
    place = world.veth(6 if offload == "none" else 4)
    if OFFLOADS[offload]:
        place.offload(*OFFLOADS[offload])
    site = world.site(place)
    site.attach()
    check_mixed(site, seed=7)


@pytest.mark.parametrize("program", ["nginx", "haproxy", "node"])
def test_real_server(world, program):
    place = world.veth()
    site = world.site(place, world.real_server(program, place))
    site.attach()
    site.limit("user", "noisy", burst=50)
    noisy, quiet = site.client("noisy"), site.client("quiet")
    assert noisy.drive(200) == [200] * 50 + [429] * 150
    assert quiet.drive(50, "/quiet") == [200] * 50
    site.check(passed=100, shed=150)
    assert site.server.targets().count("/r/49") == 1
    assert "/r/50" not in site.server.targets()


def test_real_server_answers_before_the_body(world):
    """nginx answers while the body is still coming: of every other request, before it does. The next one is behind it, and read."""
    place = world.veth()
    site = world.site(place, world.real_server("nginx", place))
    site.attach()
    site.limit("user", burst=10)
    client = site.client()
    statuses = []
    body = b"b" * 50_000
    for i in range(20):
        early = i < 10 and i % 2
        client.send(client.head(f"/{i}", "POST", Content_Length=len(body)) + (b"" if early else body))
        answer = client.read()
        assert answer.body == f"/{i}\n".encode() or answer.status == 429
        statuses.append(answer.status)
        if early:
            client.send(body)
    assert statuses == [200] * 10 + [429] * 10
    site.check(passed=10, shed=10)
    assert site.unread()["answered_early"] >= 5


@pytest.mark.alone
def test_agent_beside_server(world):
    """The agent in the server's own namespace: no --netns, every interface, loopback included."""
    place = world.veth()
    world.weir.namespace = place.server_ns
    site = world.site(place)
    site.attach()
    site.limit("user", burst=2)
    assert site.client().drive(4) == [200, 200, 429, 429]
    assert {link["name"] for link in site.status()["links"] if link["attached"]} == {"lo", "eth0"}
    site.check(passed=2, shed=2)
