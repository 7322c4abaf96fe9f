# SPDX-License-Identifier: GPL-2.0
"""`weir top` says whose the requests in flight inside servers are, without any limit."""
import pytest

from lib.inside import Open, attach
from lib.process import eventually

pytestmark = pytest.mark.together


def top(world, by="user", server="web"):
    return world.weir.json("top", server, "--once", "--interval", "100ms", "--by", by)


def rows(world, by="user"):
    """By the names of the rows; None: it is not known."""
    names = ("user", "verb", "namespace", "resource") if by == "request" else (by,)
    return {tuple(row[name] for name in names) if len(names) > 1 else row[by]: row.get("in_flight")
            for row in top(world, by)["rows"]}


def total(world):
    (server,) = top(world)["servers"]
    return server.get("in_flight")


def watches(world, server, user, n, target="/watch/dev/pods?wait", **options):
    return [Open(world, server, target, user, **options) for _ in range(n)]


@pytest.fixture
def api(world, serve):
    server = serve("apiserver")
    attach(world, server)
    return server


def test_without_a_limit(world, api):
    of_alice = watches(world, api, "alice", 7)
    eventually(lambda: rows(world) == {"alice": 7}, "the watches are in flight")
    of_bob = watches(world, api, "bob", 3, "/get/prod/events/x?wait")
    eventually(lambda: rows(world) == {"alice": 7, "bob": 3}, "all of them are in flight")
    assert total(world) == 10
    assert rows(world, "namespace") == {"dev": 7, "prod": 3}
    assert rows(world, "verb") == {"watch": 7, "get": 3}
    assert rows(world, "resource") == {"pods": 7, "events": 3}
    assert rows(world, "source") == {api.place.client_address: 10}
    assert rows(world, "request") == {("alice", "watch", "dev", "pods"): 7, ("bob", "get", "prod", "events"): 3}
    assert "in_flight" not in top(world, "connection")["servers"][0]
    for client in of_alice[:4] + of_bob:
        client.close()
    eventually(lambda: rows(world) == {"alice": 3, "bob": 0}, "those who went have none")
    for client in of_alice:
        client.close()
    eventually(lambda: rows(world) == {"alice": 0, "bob": 0}, "none is in flight")
    assert total(world) == 0
    assert rows(world, "verb") == {"watch": 0, "get": 0}


def test_before_anybody_looks(world, api):
    """What ends soon is not written down then, and all is once somebody has looked."""
    watches(world, api, "alice", 2)
    watches(world, api, "carol", 1, "/list/prod/events?wait")
    watches(world, api, "bob", 1, "/get/prod/events/x?wait")
    eventually(lambda: world.weir.server()["seen_inside"].get("seen") == 4, "all of them have come")
    assert rows(world) == {"alice": 2, "carol": 1, "bob": 0}
    watches(world, api, "bob", 1, "/get/prod/events/x?wait")
    eventually(lambda: rows(world) == {"alice": 2, "carol": 1, "bob": 1}, "the one that came after that")


def test_many_on_one_connection_end_one_after_the_other(world, api):
    api.get("/list/dev/pods", "alice", 200)
    assert rows(world) == {"alice": 0}


@pytest.mark.parametrize("query", ["panic", "exit", "recovered"])
def test_however_a_handler_ends(world, api, query):
    Open(world, api, f"/get/dev/pods?{query}", "alice").process.wait()
    assert rows(world) == {"alice": 0}


def test_the_agent_and_the_server_come_and_go(world, api):
    watches(world, api, "alice", 2)
    eventually(lambda: rows(world) == {"alice": 2}, "both are in flight")
    world.weir.kill()
    watches(world, api, "alice", 1)
    world.weir.start()
    eventually(lambda: rows(world) == {"alice": 3}, "one came while there was no agent")
    api.close()
    eventually(lambda: rows(world).get("alice") != 3, "the server is gone")
    assert rows(world)["alice"] in (None, 0)


def test_a_connection_that_goes_on(world, api):
    """Of HTTP/1.1 nobody sees where a request ends, until a limit on requests in flight asks for it."""
    (early,) = watches(world, api, "alice", 1, protocol="--http1.1")
    watches(world, api, "bob", 1)
    eventually(lambda: rows(world) == {"alice": None, "bob": 1}, "it may be in flight")
    assert total(world) is None
    world.weir("limit", "set", "each", "--key", "user", "--in-flight", 100)
    assert rows(world) == {"alice": None, "bob": 1}, "the limit has not seen where it began"
    world.weir("limit", "delete", "each")
    early.close()
    eventually(lambda: rows(world) == {"alice": 0, "bob": 1}, "its connection has ended")
    world.weir("limit", "set", "open", "--key", "total", "--in-flight", 100)
    (late,) = watches(world, api, "alice", 1, protocol="--http1.1")
    eventually(lambda: rows(world) == {"alice": 1, "bob": 1}, "its end will be seen")
    world.weir("limit", "delete", "open")
    eventually(lambda: rows(world) == {"alice": None, "bob": 1}, "its end will not be seen any more")
    late.close()
    eventually(lambda: rows(world) == {"alice": 0, "bob": 1}, "its connection has ended")


def test_any_go_server(world, serve):
    server = serve("plain")
    attach(world, server)
    client = server.place.client_address
    Open(world, server, "/a?wait")
    eventually(lambda: rows(world, "source") == {client: 1}, "it is in flight")
    assert rows(world) == {client: 1}
    assert rows(world, "resource") == {"/": 1}


def test_who_is_refused_has_none(world, serve):
    server = serve("apiserver")
    attach(world, server, mode="auto")
    if world.weir.server()["inside"]["lane"] != "answer":
        pytest.skip(world.weir.server()["inside"]["why"])
    world.weir("limit", "set", "user", "--qps", 0, "--burst", 1)
    watches(world, server, "alice", 1)
    eventually(lambda: rows(world) == {"alice": 1}, "the first is in flight")
    assert server.get("/watch/dev/pods?wait", "alice")[0].startswith("429")
    assert rows(world) == {"alice": 1}
