# SPDX-License-Identifier: GPL-2.0
"""An API server is to refuse by memory where no registers may be written (attach --write-memory). Whether this machine's kernel lets any
program write memory or registers, it says itself: most of what is tested here is what is said where it does not. The rest needs a guest
(tests/inside/refusing)."""
import pytest

from lib.inside import attach
from lib.process import eventually

pytestmark = pytest.mark.together

PODS = "/get/dev/pods"
LOCKED = "the kernel lets no program write a server's registers or memory: it is locked down"
NOT_BY_MEMORY = "by memory it cannot refuse either: it is no Kubernetes API server with API Priority and Fairness"


def inside(world):
    return world.weir.server()["inside"]


def attach_words(server, *more):
    return "attach", "web", "--port", server.port, "--netns", server.place.server_ns.path, *more


@pytest.mark.parametrize("name", ["apiserver", "modern"])
def test_it_refuses_or_says_why(world, serve, name):
    server = serve(name)
    attach(world, server, mode="auto", options=["--write-memory"])
    world.weir("limit", "set", "user", "alice", "--qps", "0", "--burst", "3")
    refuses = inside(world)["lane"] == "answer"
    passed = 3 if refuses else 8  # by its address alice has no limit
    assert [answer[:3] for answer in server.get(PODS, "alice", 8)] == ["200"] * passed + ["429"] * (8 - passed)
    assert inside(world)["write_memory"]
    if refuses:
        assert inside(world)["text"].startswith("answer")
        return
    assert inside(world)["lane"] == "off"
    assert inside(world)["why"].startswith(LOCKED) and "TLS is held" in inside(world)["why"]
    world.keep()
    world.weir("detach", "web")
    assert LOCKED in world.weir.refused(*attach_words(server, "--inside", "answer", "--write-memory"))


def test_other_servers_cannot(world, serve):
    server = serve("plain")
    attach(world, server, mode="auto", options=["--write-memory"])
    server.get("/a")
    eventually(lambda: inside(world)["lane"] != "off", "it is looked into when TLS has come")
    if inside(world)["lane"] == "answer":
        pytest.skip("this kernel lets programs write registers")
    assert inside(world)["why"] == NOT_BY_MEMORY


def test_not_without_being_told_to(world, serve):
    server = serve("apiserver")
    attach(world, server, mode="auto")
    assert not inside(world)["write_memory"]
    if inside(world)["lane"] == "answer":
        pytest.skip("this kernel lets programs write registers")
    why = inside(world)["why"]
    assert why.endswith((": Linux 6.18 and later do. Use --inside hold, or --write-memory", ": it is locked down. Use --inside hold"))
    assert "registers or memory" not in why


@pytest.mark.parametrize("mode", ["off", "hold"])
def test_it_is_for_answers(world, serve, mode):
    server = serve("apiserver")
    assert "--write-memory needs --inside answer, auto or see" in world.weir.refused(
        *attach_words(server, "--inside", mode, "--write-memory"), status=2)


def test_throttle(world, serve, tmp_path):
    """It comes and goes in place."""
    server = serve("apiserver")
    file = tmp_path / "web.yaml"
    for write in True, False, True:
        file.write_text("apiVersion: weir/v1\nkind: Throttle\nmetadata: {name: web}\nspec:\n"
                        f"  listen: ['*:{server.port}']\n  netns: {server.place.server_ns.path}\n"
                        f"  inside: auto\n  writeMemory: {str(write).lower()}\n")
        world.weir("apply", "-f", file)
        assert inside(world)["write_memory"] == write
        assert ("writeMemory: true" in world.weir("export", "--server", "web")) == write
