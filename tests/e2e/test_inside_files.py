# SPDX-License-Identifier: GPL-2.0
"""What runs of a binary: one file in several processes, one process on several ports, a program that is loaded anywhere."""
import contextlib
import shutil
import subprocess
import sys

import pytest

from lib.inside import GoServer, attach, program
from lib.process import end, eventually, run

pytestmark = pytest.mark.together

PODS = "/get/dev/pods"
OK = f"200 HTTP/2.0 {PODS}"

# Listens beside others on the port, and becomes the server.
BESIDE = """
import os, socket, sys
listener = socket.create_server(("127.0.0.1", 8443), reuse_port=True)
os.dup2(listener.fileno(), 3)
os.set_inheritable(3, True)
if len(sys.argv) > 1:
    os.execv(sys.argv[1], [sys.argv[1], "serve-inherited"])
sys.stdin.read()
"""


def seen(world, name="web"):
    return world.weir.server(name)["seen_inside"]


def inside(world, name="web"):
    return world.weir.server(name)["inside"]


@pytest.fixture
def place(world):
    world.agent()
    return world.loopback()


@pytest.fixture
def overlay(world, tmp_path):
    """Mounts one directory with the binary as that of a further container."""
    image = tmp_path / "image"
    image.mkdir()
    shutil.copy(program("apiserver"), image / "server")

    def mount(name):
        empty, merged = tmp_path / f"{name}-empty", tmp_path / name
        empty.mkdir()
        merged.mkdir()
        run("mount", "-t", "overlay", "-o", f"lowerdir={empty}:{image}", "overlay", merged)
        world.at_end(run, "umount", merged)
        return merged / "server"
    return mount


def test_overlays_of_one_image(world, serve, overlay):
    """As containers have them: each sees a file of its own, and their probes are at the same one."""
    one = serve("one", binary=overlay("one"))
    two = serve("two", binary=overlay("two"), port=9443)
    attach(world, one)
    attach(world, two, "other")
    assert one.get(PODS, "alice", 3) == [OK] * 3
    assert two.get(PODS, "bob", 2) == [OK] * 2
    assert (seen(world), seen(world, "other")) == ({"seen": 3}, {"seen": 2})
    world.weir("limit", "set", "user", "--server", "web", "--qps", 0, "--burst", 1)
    assert one.get(PODS, "alice", 3) == [OK] * 3
    assert two.get(PODS, "alice", 3) == [OK] * 3
    assert [world.weir.server(name)["dry_run_shed"] for name in ("web", "other")] == [2, 0]
    world.weir("detach", "web", "--force")
    two.get(PODS, "alice")
    assert seen(world, "other") == {"seen": 6}


@pytest.mark.long
@pytest.mark.parametrize("name", ["apiserver", "plain"])
def test_loaded_anywhere(world, serve, name):
    """A PIE: what lies in front of it in memory is not it."""
    server = serve(name, binary=program(name, pie=True))
    attach(world, server)
    assert server.get(PODS, "alice", 3) == [OK] * 3
    assert seen(world) == {"seen": 3}
    if name == "apiserver":
        assert world.weir.server()["identified"] == {"server": 3}


def test_loaded_anywhere_is_not_written_to(world, serve):
    server = serve("apiserver", binary=program("apiserver", pie=True))
    attach(world, server, mode="auto", options=["--write-memory"])
    said = inside(world)
    if said["lane"] == "answer":
        pytest.skip("here requests are refused by registers")
    assert said["why"] == "by memory it cannot refuse either: it is position-independent (PIE)"


@pytest.mark.parametrize("pie", [False, True], ids=["fixed", "anywhere"])
def test_executed_again(world, serve, pie):
    """By itself, as what upgrades itself in place does: it is where it was, or somewhere else."""
    server = serve("apiserver", binary=program("apiserver", pie=pie))
    attach(world, server)
    for _ in range(2):
        subprocess.run(server.place.client_ns.command("curl", "-sk", f"https://{server.address}{PODS}?exec"), check=False)
        eventually(server.listens, "it listens again")
        before = seen(world)["seen"]

        def sees(before=before):
            server.get(PODS, "alice")
            return seen(world)["seen"] > before
        eventually(sees, "it is looked into again")
    before = seen(world)
    assert server.get(PODS, "alice", 3) == [OK] * 3
    assert seen(world) == {**before, "seen": before["seen"] + 3}


def test_a_binary_that_nobody_else_sees(world, place, tmp_path):
    """In a mount namespace of the server's own, as in a container."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    script = 'mount -t tmpfs hidden "$1" && cp "$2" "$1/server" && exec "$1/server" "$3" "$4"'
    server = GoServer("apiserver", place, by=("unshare", "--mount", "sh", "-c", script, "sh", hidden))
    world.at_end(server.close)
    assert not list(hidden.iterdir())
    attach(world, server)
    assert server.get(PODS, "alice", 3) == [OK] * 3
    assert seen(world) == {"seen": 3}


def beside(place, *binary):
    return subprocess.Popen(place.server_ns.command(sys.executable, "-c", BESIDE, *binary), stdin=subprocess.PIPE)


@pytest.fixture
def start(world, place):
    """Starts a further process on the port: a server of this program, or one that Go has not made."""
    def start(*binary):
        n = listeners(place)
        process = beside(place, *binary)

        def stop():
            with contextlib.suppress(ProcessLookupError):
                end(process)
        world.at_end(stop)
        eventually(lambda: listeners(place) > n, "it listens")
        return process
    return start


def listeners(place):
    return len(place.server_ns.run("ss", "-Hltn", "sport", "=", ":8443").splitlines())


def processes(world):
    """Those that were found, once the kernel has them."""
    looked = inside(world)
    return {process["pid"] for process in looked["processes"] if looked["lane"] != "off"}


def connections(place, n):
    """Each takes one of the processes."""
    answers = [place.client_ns.run("curl", "-sk", f"https://127.0.0.1:8443{PODS}").strip() for _ in range(n)]
    assert answers == [OK[4:]] * n


def test_further_processes_on_the_port(world, place, start):
    """Two are as one server. Of one that cannot be looked into it is said, and what cannot be read is held again."""
    one = start(program("apiserver"))
    world.weir("attach", "web", "--port", 8443, "--netns", place.server_ns.path, "--inside", "see")
    world.attached()
    assert not world.weir.server()["hold"]["tls"]
    two = start(program("plain"))
    eventually(lambda: processes(world) == {one.pid, two.pid}, "both are looked into")
    connections(place, 20)
    assert seen(world) == {"seen": 20}
    other = start()
    eventually(lambda: len(processes(world)) == 3, "it is noticed")
    assert [process["why"] for process in inside(world)["processes"] if process["pid"] == other.pid] == \
        ["not a program that Go has made: it has no build information"]
    eventually(lambda: world.weir.server()["hold"]["tls"], "what it does cannot be seen")
    told = f"process {other.pid} (python3) is not looked into, and TLS is held: not a program that Go has made"
    eventually(lambda: told in world.weir("status"), "it is told of")
    end(other)
    end(two)
    eventually(lambda: processes(world) == {one.pid} and not world.weir.server()["hold"]["tls"], "one is left")
    connections(place, 5)
    assert seen(world) == {"seen": 25}


def test_one_process_for_two_servers(world, serve):
    """Nothing in a request says for which of them it came: it is the one's that was attached first."""
    server = serve("plain", more=["127.0.0.1:9443"])
    attach(world, server)
    words = "attach", "other", "--port", 9443, "--netns", server.place.server_ns.path, "--inside", "see"
    assert 'it serves server "web", too, which has all its requests' in world.weir.refused(*words)
    assert [server["name"] for server in world.weir.servers()] == ["web"]
    assert server.get("/a", times=2) == ["200 HTTP/2.0 /a"] * 2
    assert seen(world) == {"seen": 2}
    world.weir("detach", "web")
    world.weir(*words)
    world.attached()
    assert server.get("/a", times=2) == ["200 HTTP/2.0 /a"] * 2
    assert seen(world, "other") == {"seen": 2}
