# SPDX-License-Identifier: GPL-2.0
"""A table of connections that is full: what has ended gives way, what is new waits, or passes as was chosen."""
import contextlib
import socket
import struct

import pytest

from lib.maps import Maps
from lib.process import eventually

ROOM = 2
of_two = pytest.mark.together("--connections", ROOM)


@pytest.fixture
def full(world):
    """A site on whose table there is room for two, and two clients who have it."""
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
    return metrics["weir_connection_table_entries"]["web",], metrics["weir_connection_table_max"]["web",]


@of_two
def test_open(full):
    site, _ = full("--when-full", "open")
    assert site.client().drive(5) == [200] * 5
    assert site.weir.counts()["passed"] == ROOM
    assert site.server.served() == ROOM + 5
    assert site.unread()["conn_map_full"] >= 5
    assert (site.status()["when_full"], site.status()["connections_max"]) == ("open", ROOM)
    assert table(site) == (ROOM, ROOM)


@of_two
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


@of_two
def test_closed_and_paused(full):
    """What is paused lets everything pass."""
    site, _ = full("--when-full", "closed")
    site.weir("pause")
    assert site.client().drive(3) == [200] * 3


def test_size_is_kept(world):
    """An agent that is not told takes the table as it is; one that is told otherwise says that it cannot."""
    world.weir.start("off", "--connections", ROOM)
    site = world.site()
    site.attach()
    clients = [site.client() for _ in range(ROOM)]
    assert [client.get("/first") for client in clients] == [200] * ROOM
    world.weir.stop()
    world.weir.start()
    assert table(site) == (ROOM, ROOM)
    world.weir.stop()
    world.weir.start("off", "--connections", ROOM + 1)
    assert "holds 2 entries, 3 are asked for: detach all servers first" in site.status()["problem"]
    world.weir.stop()
    world.weir.start()


# --- known, the default: no limit is ever off

TABLE = 16
SHARE = TABLE // 4
of_table = pytest.mark.together("--connections", TABLE)


@pytest.fixture
def small(world):
    """Attached in the default mode, with a table of TABLE; nobody may name users, so that each address is one."""
    site = world.site()

    def attach(*options):
        site.attach("--trusted-proxy", "127.1.0.0/16", *options)
        Maps(world.pins).empty("finished")  # by earlier tests: a handshake looks past a few that have ended, and no more
        assert site.status()["when_full"] == "known"
        return site
    return attach


def address(n):
    return f"127.0.1.{n}"


def fill(site, n):
    """Connections that have room, each address with its share: n of them."""
    clients = [site.client(source=(address(i // SHARE), 0)) for i in range(n)]
    assert {client.get("/livez") for client in clients} == {200}
    return clients


def waits(site, source):
    """A new connection's handshake is not answered, for now."""
    with site.place.client_ns.entered():
        client = socket.socket(site.place.family)
    with client:
        client.setblocking(False)
        client.bind((source, 0))
        held = site.packets("handshake_held")
        with contextlib.suppress(BlockingIOError):
            client.connect((site.place.address, site.server.port))
        eventually(lambda: site.packets("handshake_held") > held, f"the handshake of {source} is withheld")


@of_table
def test_one_below_and_at_its_size(small):
    site = small()
    site.limit("user", burst=1)
    clients = fill(site, TABLE - 1)
    last = site.client(source=(address(9), 0))
    assert last.drive(3) == [200, 429, 429]
    assert table(site) == (TABLE, TABLE)
    assert site.unread() == {}
    waits(site, address(10))
    assert site.unread()["conn_map_full"] >= 1
    # Who has room is limited as ever, and so is who gets some.
    assert [client.get("/again") for client in clients] == [200, 429, 429, 429] * (TABLE // SHARE - 1) + [200, 429, 429]
    clients[0].close()
    later = site.client(source=(address(10), 0))
    assert later.drive(2) == [200, 429]


@of_table
def test_far_above_its_size(small):
    site = small()
    site.limit("user", burst=0)
    fill(site, TABLE)
    for n in range(3 * TABLE):
        waits(site, address(20 + n))
    assert table(site) == (TABLE, TABLE)
    site.check(passed=0, shed=0, exempt=TABLE)


@of_table
def test_nobody_has_more_than_a_share(small):
    site = small()
    site.limit("user", burst=1)
    clients = fill(site, SHARE)
    for _ in range(2 * TABLE):
        waits(site, address(0))
    assert site.unread()["conn_over_share"] >= 2 * TABLE
    assert "conn_map_full" not in site.unread()
    assert site.client(source=(address(1), 0)).drive(2) == [200, 429]
    clients[0].close()
    assert site.client(source=(address(0), 0)).drive(2) == [200, 429]


@of_table
def test_proxies_have_no_share(small):
    site = small("--trusted-proxy", address(0))
    clients = [site.client(f"user-{n}", source=(address(0), 0)) for n in range(TABLE)]
    site.limit("user", burst=1)
    assert [client.drive(2) for client in clients] == [[200, 429]] * TABLE
    waits(site, address(0))


@of_table
def test_known_sources_pass_and_are_limited(small):
    site = small("--address", f"{address(30)}/32,batch", "--exempt-source", f"{address(31)}/32", "--exempt-user",
                 address(32))
    site.limit("user", burst=2)
    fill(site, TABLE)
    free = [site.client(source=(address(n), 0)) for n in (31, 32)]
    assert [client.drive(5) for client in free] == [[200] * 5] * 2
    batch = site.client(source=(address(30), 0))
    assert batch.drive(2) == [200] * 2
    served = site.server.served()
    batch.ask("/held")
    eventually(lambda: site.packets("held_record") >= 2, "it was sent again, and withheld again")
    assert site.server.served() == served
    waits(site, address(33))


@of_table
def test_paused_and_dry_run(small):
    """Nothing waits then."""
    site = small("--dry-run")
    fill(site, TABLE)
    assert site.client(source=(address(40), 0)).drive(3) == [200] * 3
    site.weir("pause")
    assert site.client(source=(address(40), 0)).drive(3) == [200] * 3


def churn(site, n, source, reset):
    """n connections, one after the other, of each of which a request is refused."""
    for _ in range(n):
        client = site.client(source=(source, 0))
        assert client.get("/refused") == 429
        if reset:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        eventually(lambda: all(connection.ending for connection in site.server.connections[-1:]), "the server has closed it")


@of_table
@pytest.mark.parametrize("reset", [False, True])
def test_churn_leaves_others_their_limits(small, reset):
    site = small()
    site.limit("user", burst=3)
    site.limit("user", address(0), burst=0)
    others = [site.client(source=(address(n), 0)) for n in (1, 2)]
    heard = [[], []]
    for _ in range(6):
        churn(site, TABLE, address(0), reset)
        for client, statuses in zip(others, heard):
            statuses.append(client.get("/other"))
    assert heard == [[200] * 3 + [429] * 3] * 2
    assert "conn_map_full" not in site.unread()
    site.check(passed=6, shed=6 * TABLE + 6)


@of_table
def test_what_has_ended_gives_way(small):
    """The server has closed first: its TIME-WAIT may need the numbers for a minute, if there is room for so long."""
    site = small()
    site.limit("user", burst=0)
    for n in range(3 * TABLE):
        client = site.client(source=(address(0), 0))
        assert client.get("/refused") == 429
        assert client.get("/livez?close=1") == 200
        client.expect_end()
        client.close()
    assert table(site)[0] <= TABLE
    assert site.weir.metrics()["weir_connections_gave_way_total"]["web",] >= TABLE
    site.check(passed=0, shed=3 * TABLE, exempt=3 * TABLE)
