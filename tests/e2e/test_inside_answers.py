# SPDX-License-Identifier: GPL-2.0
"""A server that works as a Kubernetes API server does refuses requests as weir has decided them (attach --inside answer): where the
kernel lets a program write a server's registers."""
import contextlib
import json
import socket
import subprocess

import pytest

from lib.inside import Open, of_limit, refuse
from lib.process import eventually

pytestmark = pytest.mark.together

OK = "200 HTTP/2.0 {}"
PODS = "/get/dev/pods"
REFUSED = "429 too many requests"  # by API Priority and Fairness, as if it had rejected the request
BARE = "429"  # at the authorization


FORBIDDEN = "403"  # the same, of what a limit never lets pass


@pytest.fixture
def server(world, serve):
    server = serve("apiserver")
    refuse(world, server)
    return server


def seen(world):
    return world.weir.server()["seen_inside"]


def events(world):
    return [json.loads(line) for line in world.weir("events", "--json").splitlines()]


def watch(world, server, user):
    return Open(world, server, "/watch/dev/pods?wait", user)


def test_users(world, server):
    """The server's own refusal; who is not over his limit does not notice."""
    world.weir("limit", "set", "user", "alice", "--qps", "0", "--burst", "3")
    assert server.get(PODS, "alice", 8) == [OK.format(PODS)] * 3 + [REFUSED] * 5
    assert server.get(PODS, "bob", 5) == [OK.format(PODS)] * 5
    assert seen(world) == {"seen": 13, "answered": 5}
    assert (world.weir.server()["passed"], world.weir.server()["shed"]) == (8, 5)


def test_what_is_not_prioritized(world, server):
    """Watches and logs: they are decided where they are authorized, each once."""
    world.weir("limit", "set", "user", "alice", "--qps", "0", "--burst", "2")
    log = f"{PODS}/x/log"
    assert server.get(log, "alice", 3) == [OK.format(log)] * 2 + [BARE]
    assert server.get("/watch/dev/pods", "alice", 2) == [BARE] * 2
    assert server.get("/watch/dev/pods", "bob", 2) == [OK.format("/watch/dev/pods")] * 2
    assert seen(world) == {"seen": 7, "answered": 3}
    assert server.get("/list/dev/pods", "alice") == [REFUSED]


def test_what_the_server_rejects_costs_nothing(world, server):
    world.weir("limit", "set", "user", "alice", "--qps", "0", "--burst", "2")
    world.weir("limit", "set", "busy", "--key", "total", "--in-flight", "5")
    rejected = f"{PODS}/rejected"
    assert server.get(rejected, "alice", 10) == [REFUSED] * 10
    assert seen(world) == {"seen": 10, "rejected": 10}
    assert (of_limit(world, "busy", "in_flight"), of_limit(world, "user", "admitted")) == (0, 0)
    assert server.get(PODS, "alice", 3) == [OK.format(PODS)] * 2 + [REFUSED]


def test_denied(world, server):
    """What is never let pass is forbidden, wherever it is decided; trace, events and the client say the same."""
    world.weir("limit", "set", "user", "alice", "--deny")
    trace = world.trace()
    assert server.get(PODS, "alice", 2) == [FORBIDDEN] * 2
    assert server.get("/watch/dev/pods", "alice") == [FORBIDDEN]
    assert server.get(PODS, "bob") == [OK.format(PODS)]
    assert [request["status"] for request in trace.end() if request["user"] == "alice"] == [403] * 3
    assert seen(world) == {"seen": 4, "answered": 3}


def test_refusals_are_events(world, server):
    """They are told of though nobody traces."""
    world.weir("limit", "set", "user", "alice", "--qps", "0", "--burst", "1")
    server.get(PODS, "alice", 4)
    eventually(lambda: len(events(world)) == 3, "there are three")
    assert {(event["user"], event["verb"], event["resource"], event["status"]) for event in events(world)} == \
        {("alice", "get", "pods", 429)}


def test_open_watches(world, server):
    world.weir("limit", "set", "watches", "--key", "user", "--in-flight", "2", "--verb", "watch")
    watches = [watch(world, server, "alice") for _ in range(2)]
    eventually(lambda: of_limit(world, "watches", "in_flight") == 2, "they are open")
    assert server.get("/watch/dev/pods", "alice", 2) == [BARE] * 2
    assert server.get("/watch/dev/pods", "bob", 2) == [OK.format("/watch/dev/pods")] * 2
    assert server.get(PODS, "alice", 3) == [OK.format(PODS)] * 3
    watches[0].close()
    eventually(lambda: of_limit(world, "watches", "in_flight") == 1, "a seat is free")
    assert server.get("/watch/dev/pods", "alice", 2) == [OK.format("/watch/dev/pods")] * 2
    watches[1].close()
    eventually(lambda: of_limit(world, "watches", "in_flight") == 0, "all seats are free")


def test_panics(world, server):
    """What was decided at Handle, and has panicked behind it."""
    world.weir("limit", "set", "busy", "--key", "total", "--in-flight", "5")
    subprocess.run(server.place.client_ns.command("curl", "-sk", "--max-time", "5", f"https://{server.address}{PODS}?panic"),
                   check=False, stdout=subprocess.DEVNULL)
    eventually(lambda: of_limit(world, "busy", "in_flight") == 0, "its seat is free")
    assert seen(world) == {"seen": 1, "abandoned": 1}
    assert server.get(PODS, times=2) == [OK.format(PODS)] * 2


def test_penalties(world, server):
    """Who does not wait is told to wait longer."""
    world.weir("limit", "set", "user", "--qps", "0.001", "--burst", "1", "--penalty", "exponential:60s..600s")
    assert server.get(PODS, "alice", 4) == [OK.format(PODS)] + [REFUSED] * 3
    assert sum(n for labels, n in world.weir.metrics()["weir_shed_total"].items() if "penalty" in labels) == 2


@pytest.fixture
def far(world, serve):
    """Behind a veth, so that XDP sees its clients."""
    server = serve("apiserver", world.veth())
    refuse(world, server, "--xdp", "generic")
    world.weir("limit", "set", "user", "--qps", "0.01", "--burst", "1", "--penalty", "exponential:60s..60s")
    return server


def connects(server):
    with server.place.client_ns.entered(), contextlib.suppress(TimeoutError):
        socket.create_connection((server.place.address, server.port), 4).close()
        return True
    return False


def test_the_box(world, far):
    """Who goes on while refused opens no further connection until the penalty is over, agent or none."""
    assert far.get(PODS, "alice") == [OK.format(PODS)]
    assert far.get(PODS, "alice") == [REFUSED]
    assert connects(far)
    assert far.get(PODS, "alice") == [REFUSED]
    assert not connects(far)
    world.weir("pause")
    assert connects(far)
    world.weir("resume")
    assert not connects(far)
    world.weir.kill()
    assert not connects(far)
    eventually(lambda: connects(far), "the penalty is over", 300)
    world.weir.start()
    assert world.weir.server()["packets"]["boxed"] >= 3


def test_no_box_where_others_ask(world, far):
    assert far.get(PODS, "bob") == [OK.format(PODS)]
    assert far.get(PODS, "alice", 4) == [OK.format(PODS)] + [REFUSED] * 3
    assert connects(far) and far.get(PODS, "carol") == [OK.format(PODS)]
    assert world.weir.server()["packets"].get("boxed", 0) == 0


def test_who_cannot_be_read_is_not_refused(world, server):
    world.weir("limit", "set", "user", "--qps", "0", "--burst", "0")
    assert server.get(PODS, "alice") == [REFUSED]
    server.get(PODS, "unmapped", 10)
    eventually(lambda: world.weir.server()["inside"]["lane"] == "see", "nobody is refused any more")
    assert "requests could not be read in its memory" in world.weir.server()["inside"]["why"]
    assert server.get(PODS, "alice") == [OK.format(PODS)]
