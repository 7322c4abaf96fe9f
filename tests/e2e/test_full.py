# SPDX-License-Identifier: GPL-2.0
"""A table of connections that is full: those that find no room pass unlimited, or wait until there is some."""
import pytest

from lib.process import eventually

ROOM = 2


@pytest.fixture
def full(world):
    """A site on whose table there is room for two, and two clients who have it."""
    world.weir.start("off", "--connections", ROOM)
    site = world.site()

    def attach(*options):
        site.attach(*options)
        site.limit("user", burst=ROOM + 1)
        clients = [site.client() for _ in range(ROOM)]
        assert [client.get("/first") for client in clients] == [200] * ROOM
        return site, clients
    return attach


def table(site):
    metrics = site.weir.metrics()
    return metrics["weir_conns"]["web",], metrics["weir_conns_max"]["web",]


def test_open(full):
    site, _ = full()
    assert site.client().drive(5) == [200] * 5
    assert site.weir.counts()["passed"] == ROOM
    assert site.server.served() == ROOM + 5
    assert site.unread()["conn_map_full"] >= 5
    assert (site.status()["when_full"], site.status()["connections_max"]) == ("open", ROOM)
    assert table(site) == (ROOM, ROOM)


def test_closed(full):
    site, (first, _) = full("--when-full", "closed")
    assert site.status()["when_full"] == "closed"
    waiting = site.client()  # a handshake needs no room
    waiting.ask("/waits")
    eventually(lambda: site.unread().get("conn_map_full", 0) >= 3, "it was sent again, and found no room again")
    assert site.server.served() == ROOM
    first.close()
    answer = waiting.read()
    assert waiting.check(answer, "/waits") == 200
    assert waiting.get("/limited") == 429
    site.check(passed=ROOM + 1, shed=1)


def test_closed_and_paused(full):
    """What is paused lets everything pass."""
    site, _ = full("--when-full", "closed")
    site.weir("pause")
    assert site.client().drive(3) == [200] * 3


def test_size_is_kept(full, world):
    """An agent that is not told takes the table as it is; one that is told otherwise says that it cannot."""
    site, _ = full()
    world.weir.stop()
    world.weir.start()
    assert table(site) == (ROOM, ROOM)
    world.weir.stop()
    world.weir.start("off", "--connections", ROOM + 1)
    assert "holds 2 entries, 3 are asked for: detach all servers first" in site.status()["problem"]
    world.weir.stop()
    world.weir.start()
