# SPDX-License-Identifier: GPL-2.0
"""Which processes are looked into: those that listen on the server's port, whatever becomes of them."""
import contextlib
import os
import subprocess
import sys

import pytest

from lib.inside import GoServer, get, program
from lib.process import PATIENCE_S, end, eventually, run

pytestmark = pytest.mark.together

# Listens as descriptor 3, and becomes another program when it is told to.
LATE = """
import os, socket, sys
listener = socket.create_server(("127.0.0.1", 8443))
os.dup2(listener.fileno(), 3)
os.set_inheritable(3, True)
sys.stdin.readline()
os.execv(sys.argv[1], [sys.argv[1], "serve-inherited"])
"""


PROCESS_NAMESPACE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


def attach(world, server, name="web"):
    world.weir("attach", name, "--port", server.port, "--netns", server.place.server_ns.path, "--inside", "see")
    world.attached()


def seen(world, name="web"):
    return world.weir.server(name)["seen_inside"].get("seen", 0)


def records(world):
    return world.weir.server()["records_passed"]


def inside(world):
    return world.weir.server()["inside"]


@pytest.fixture
def place(world):
    world.agent()
    return world.loopback()


def test_containers_of_one_image(world, place):
    """Two cgroups and two namespaces share a binary, whose probes run in both: only what is attached is counted."""
    servers = []
    for name, where in ("one", place), ("two", world.loopback_elsewhere()):
        cgroup = world.cgroup(name)
        server = GoServer("apiserver", where)
        world.at_end(server.close)
        (cgroup / "cgroup.procs").write_text(str(server.process.pid))
        servers.append(server)
    one, two = servers
    attach(world, one)
    two.get("/get/dev/pods", "alice", 3)
    one.get("/get/dev/pods", "alice", 2)
    assert seen(world) == 2
    attach(world, two, "other")
    two.get("/get/dev/pods", "alice", 4)
    one.get("/get/dev/pods", "alice", 1)
    assert (seen(world), seen(world, "other")) == (3, 4)
    world.weir("detach", "web", "--force")
    one.get("/get/dev/pods", "alice", 1)
    two.get("/get/dev/pods", "alice", 1)
    assert seen(world, "other") == 5


def test_late_exec(world, place):
    """As in a container that starts, or by socket activation: a process that listens becomes the server later."""
    world.weir.run("attach", "web", "--port", 8443, "--netns", place.server_ns.path, "--inside", "see")
    world.attached()
    process = subprocess.Popen(place.server_ns.command(sys.executable, "-c", LATE, program("plain")), stdin=subprocess.PIPE)
    try:
        eventually(lambda: "not a program that Go has made" in (inside(world)["why"] or ""), "it is told what listens")
        process.stdin.write(b"\n")
        process.stdin.close()
        eventually(lambda: inside(world)["lane"] == "see", "the server is looked into")
        assert get("127.0.0.1:8443", place, "/a", times=3) == ["200 HTTP/2.0 /a"] * 3
        assert seen(world) == 3
    finally:
        with contextlib.suppress(ProcessLookupError):
            end(process)


def descriptors(world):
    return len(os.listdir(f"/proc/{world.weir.process.pid}/fd"))


def pinned(world):
    return len(list(world.pins.glob("net-*/inside*")))


def test_crash_loop(world, place):
    """What a server leaves behind that is killed again and again goes with it."""
    server = GoServer("plain", place)
    attach(world, server)
    pins, open_before = pinned(world), descriptors(world)
    for _ in range(10):
        server.process.kill()
        server.process.wait()
        server = GoServer("plain", place)
    world.at_end(server.close)
    eventually(lambda: [process["pid"] for process in inside(world)["processes"]] == [server.process.pid] and
               inside(world)["lane"] == "see", "the last one is looked into")
    assert server.get("/a", times=3) == ["200 HTTP/2.0 /a"] * 3
    assert seen(world) == 3
    eventually(lambda: pinned(world) == pins and descriptors(world) <= open_before + 2, "what the others had is gone")


def test_server_in_a_process_namespace(world, place):
    """As in a container: the server counts itself as 1."""
    server = GoServer("apiserver", place, by=PROCESS_NAMESPACE)
    world.at_end(server.process.wait)
    world.at_end(server.process.kill)
    attach(world, server)
    server.get("/get/dev/pods", "alice", 3)
    assert seen(world) == 3


# On so many addresses that nobody follows them; 127.0.0.1 is the server's.
MANY = """
import socket, sys
sockets = [socket.create_server((f"127.0.0.{i}", 8443)) for i in range(2, 67)]
print("ready", flush=True)
sys.stdin.readline()
"""


def test_more_than_can_be_followed(world, place):
    """Of whom nobody is sure that he is looked into, TLS is held: what was known before is no longer true."""
    server = GoServer("apiserver", place)
    world.at_end(server.close)
    attach(world, server)
    assert not world.weir.server()["hold"]["tls"]
    many = subprocess.Popen(place.server_ns.command(sys.executable, "-c", MANY), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert many.stdout.readline() == b"ready\n"
        # The agent may look while few of them listen: the lane is then "see" for a while, and TLS is held for their process.
        eventually(lambda: (inside(world)["lane"], inside(world)["why"]) == ("off", "more than 64 sockets listen there"),
                   "nobody is looked into")
        assert world.weir.server()["hold"]["tls"]
        before = records(world)
        server.get("/get/dev/pods", "alice", 3)
        assert records(world) > before
    finally:
        end(many)
    eventually(lambda: not world.weir.server()["hold"]["tls"], "the server is looked into again")
    before = seen(world)
    server.get("/get/dev/pods", "alice", 3)
    assert seen(world) == before + 3


@pytest.mark.long
@pytest.mark.parametrize("test", ["test_containers_of_one_image", "test_server_in_a_process_namespace"])
def test_agent_in_a_process_namespace(test):
    """As on a node that is itself a container: the agent counts processes otherwise than the kernel."""
    run(*PROCESS_NAMESPACE, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{__file__}::{test}",
        timeout=10 * PATIENCE_S)  # whatever the test itself has patience for
