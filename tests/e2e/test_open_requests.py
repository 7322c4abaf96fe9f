# SPDX-License-Identifier: GPL-2.0
"""`weir top` says whose the requests in flight are, without any limit."""
import pytest

from lib.nginx import configuration
from lib.process import eventually

pytestmark = pytest.mark.together

# It waits for its answers from another server.
PROXY = """
    server {{
        listen {listen} backlog=1024;
        location / {{
            proxy_pass http://UPSTREAM;
            proxy_http_version 1.1;
        }}
    }}
"""


@pytest.fixture
def slow(world):
    """A site whose server is an nginx; the server behind that answers what is held when its gate opens."""
    place = world.veth()
    behind = world.echo(place)
    text = configuration(PROXY.replace("UPSTREAM", f"{place.authority}:{behind.port}"))
    site = world.site(place, world.real_server("nginx", place, text=text))
    site.attach()
    site.gate = behind.gate
    world.at_end(behind.gate.set)
    return site


def top(world, by="user"):
    return world.weir.json("top", "web", "--once", "--interval", "100ms", "--by", by)


def in_flight(world, by="user"):
    return {row[by]: row["in_flight"] for row in top(world, by)["rows"]}


def total(world):
    (server,) = top(world)["servers"]
    return server["in_flight"]


def ask(site, user, n, namespace="dev"):
    clients = [site.client(user) for _ in range(n)]
    for client in clients:
        client.ask(f"/api/v1/namespaces/{namespace}/pods?held=1")
    return clients


def test_in_flight_without_a_limit(world, slow):
    clients = ask(slow, "alice", 3) + ask(slow, "bob", 1, "prod")
    expected = {"alice": 3, "bob": 1}
    eventually(lambda: in_flight(world) == expected, "all of them are in flight")
    assert in_flight(world, "namespace") == {"dev": 3, "prod": 1}
    assert total(world) == 4
    assert slow.status()["limits"] == []
    assert in_flight(world, "source") == {slow.place.client_address: 4}
    assert "in_flight" not in top(world, "verb")["rows"][0]
    slow.gate.set()
    assert [client.read().status for client in clients] == [200] * 4
    eventually(lambda: in_flight(world) == {"alice": 0, "bob": 0}, "none is in flight")
    assert total(world) == 0
    assert clients[0].get("/r/1") == 200


def test_who_goes_has_none(world, slow):
    for client in ask(slow, "alice", 3)[:2]:
        client.reset()
    eventually(lambda: in_flight(world) == {"alice": 1}, "one is left")


def test_over_restarts_and_pauses(world, slow):
    """They stand with the connections, in the kernel."""
    ask(slow, "alice", 2)
    eventually(lambda: in_flight(world) == {"alice": 2}, "both are in flight")
    world.weir.kill()
    third = ask(slow, "alice", 1)[0]
    third.settle()
    world.weir.start()
    assert in_flight(world) == {"alice": 3}
    world.weir("pause", "web")
    ask(slow, "alice", 1)
    eventually(lambda: in_flight(world) == {"alice": 4}, "one came in the pause")


def test_refused_is_not_in_flight(world, slow):
    slow.limit("user", burst=1)
    assert ask(slow, "alice", 1)
    eventually(lambda: in_flight(world) == {"alice": 1}, "the first is in flight")
    assert ask(slow, "alice", 1)[0].read().status == 429
    assert in_flight(world) == {"alice": 1}
