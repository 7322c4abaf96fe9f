# SPDX-License-Identifier: GPL-2.0
"""Requests in flight inside Go servers: each seat that a request takes comes back when it ends, however it does."""
import subprocess
from pathlib import Path

import pytest

from lib.inside import Open, attach, of_limit
from lib.process import eventually

pytestmark = pytest.mark.together

OK = "200 HTTP/2.0 {}"


def limit(world, n, *options):
    world.weir("limit", "set", "busy", "--key", "total", "--in-flight", n, *options)


def taken(world, name="busy"):
    return of_limit(world, name, "in_flight")


def seen(world):
    return {outcome: n for outcome, n in world.weir.server()["seen_inside"].items() if outcome != "seen"}


def test_seats_come_back(world, serve):
    """Requests that would be refused take none: all of them pass, and are counted."""
    server = serve("plain")
    attach(world, server)
    limit(world, 2)
    assert server.get("/a", times=5) == [OK.format("/a")] * 5
    assert (taken(world), of_limit(world, "busy", "highest")) == (0, 1)
    waiting = [Open(world, server, "/w?wait") for _ in range(2)]
    eventually(lambda: taken(world) == 2, "both are in flight")
    assert world.weir.metrics()["weir_limit_in_flight"]["busy", "web"] == 2
    assert server.get("/a", times=3) == [OK.format("/a")] * 3
    assert world.weir.server()["dry_run_shed"] == 3
    waiting[0].close()
    eventually(lambda: taken(world) == 1, "its seat is free")
    assert server.get("/a", times=3) == [OK.format("/a")] * 3
    assert world.weir.server()["dry_run_shed"] == 3
    waiting[1].close()
    eventually(lambda: taken(world) == 0, "all seats are free")
    assert (of_limit(world, "busy", "highest"), seen(world)) == (2, {})


@pytest.mark.parametrize("protocol", ["http1", "http2"])
@pytest.mark.parametrize("how", ["panic", "exit"])
def test_handlers_that_do_not_return(world, serve, how, protocol):
    server = serve("plain")
    attach(world, server)
    limit(world, 10)
    for _ in range(3):
        curl = server.place.client_ns.command("curl", "-sk", f"--{protocol}" + (".1" if protocol == "http1" else ""),
                                              "--max-time", "2", f"https://{server.address}/p?{how}")
        subprocess.run(curl, check=False, stdout=subprocess.DEVNULL)
    eventually(lambda: taken(world) == 0, "all seats are free")
    assert of_limit(world, "busy", "admitted") == 3
    assert seen(world) == {"abandoned": 3}


def test_recovered_panics(world, serve):
    """In the handler itself: it returns after all."""
    server = serve("plain")
    attach(world, server)
    limit(world, 10)
    assert server.get("/p?recovered", times=3) == [OK.format("/p?recovered")] * 3
    assert (taken(world), of_limit(world, "busy", "admitted"), seen(world)) == (0, 3, {})


def test_what_one_user_has_open(world, serve):
    """As the server itself knows users, verbs and subresources. Other verbs, and other users, are not in its way."""
    server = serve("apiserver")
    attach(world, server)
    world.weir("limit", "set", "watches", "--key", "user", "--in-flight", "3", "--long-running", "yes")
    alice = [Open(world, server, "/watch/dev/pods?wait", "alice") for _ in range(2)]
    alice.append(Open(world, server, "/get/dev/pods/x/log?wait", "alice"))
    bob = Open(world, server, "/watch/dev/pods?wait", "bob")
    eventually(lambda: taken(world, "watches") == 4, "they are in flight")
    assert server.get("/list/dev/pods", "alice", 2) == [OK.format("/list/dev/pods")] * 2
    assert world.weir.server()["dry_run_shed"] == 0
    fourth = Open(world, server, "/watch/dev/pods?wait", "alice")
    eventually(lambda: world.weir.server()["dry_run_shed"] == 1, "the fourth is one too many")
    assert taken(world, "watches") == 4
    for request in (*alice, bob, fourth):
        request.close()
    eventually(lambda: taken(world, "watches") == 0, "all seats are free")
    assert seen(world) == {}


def test_killed_servers(world, serve):
    """Their seats are free at once, whether there is an agent or not."""
    server = serve("plain")
    attach(world, server)
    limit(world, 10)
    for _ in range(3):
        Open(world, server, "/h?hang")
    eventually(lambda: taken(world) == 3, "they are in flight")
    world.weir.kill()
    server.process.kill()
    server.process.wait()
    world.weir.start()
    eventually(lambda: world.weir.server()["inside"]["why"] == "no process listens there yet", "the next agent looks")
    assert (taken(world), seen(world)) == (0, {"abandoned": 3})


def test_agents_come_and_go(world, serve):
    """What is in flight stays counted, and is given back without an agent."""
    server = serve("plain")
    attach(world, server)
    limit(world, 10)
    waiting = [Open(world, server, "/w?wait") for _ in range(4)]
    eventually(lambda: taken(world) == 4, "they are in flight")
    world.weir.kill()
    waiting[0].close()
    world.weir.start()
    eventually(lambda: world.weir.server()["inside"]["lane"] == "see", "the next agent looks into it")
    eventually(lambda: taken(world) == 3, "one has ended meanwhile")
    waiting[1].close()
    eventually(lambda: taken(world) == 2, "another one ends")
    world.weir.kill()
    waiting[2].close()
    waiting[3].close()
    world.weir.start("off", "--inside", "off")
    eventually(lambda: taken(world) == 0, "who looks into nobody leaves nothing taken")


def test_ends_are_probed_when_they_matter(world, serve):
    """Only while there is a limit on requests in flight: it has no seats of what began before."""
    server = serve("plain")
    attach(world, server)
    pins = len(list(world.pins.glob("net-*/inside-*")))
    early = Open(world, server, "/w?wait")
    eventually(lambda: world.weir.server()["passed"] == 1, "it is seen")
    limit(world, 10)
    assert len(list(world.pins.glob("net-*/inside-*"))) > pins
    late = Open(world, server, "/w?wait")
    eventually(lambda: taken(world) == 1, "it is counted")
    early.close()
    late.close()
    eventually(lambda: taken(world) == 0, "it is free")
    world.weir("limit", "delete", "busy")
    assert len(list(world.pins.glob("net-*/inside-*"))) == pins


def test_what_the_kernel_does_not_take_is_tried_again(world, serve):
    """Nothing is half as it should be meanwhile, and it is said."""
    server = serve("plain")
    attach(world, server)
    pins = sorted(world.pins.glob("net-*/inside-*-*"), key=lambda pin: int(pin.name.rpartition("-")[2]))
    stem, _, last = str(pins[-1]).rpartition("-")
    taken_names = [Path(f"{stem}-{n}") for n in range(int(last) + 1, int(last) + 100)]
    for name in taken_names:
        name.mkdir()
    limit(world, 10)
    inside = world.weir.server()["inside"]
    assert inside["lane"] == "see" and "File exists" in inside["why"]
    assert server.get("/a", times=3) == [OK.format("/a")] * 3
    assert world.weir.server()["passed"] == 3
    for name in taken_names:
        name.rmdir()
    eventually(lambda: not world.weir.server()["inside"]["why"], "it is tried again")
    Open(world, server, "/w?wait")
    eventually(lambda: taken(world) == 1, "the limit is in force")
