# SPDX-License-Identifier: GPL-2.0
"""Nobody is looked into: `weir agent --inside off`, and a weir made with INSIDE=0."""
import pytest

from lib.inside import GoServer
from lib.process import eventually
from lib.weir import BINARY, WITHOUT_INSIDE

OFF = {"off": "this agent looks into no server (weir agent --inside off)",
       "built without": "this weir was built without it (INSIDE=0)"}


@pytest.fixture
def server(world):
    server = GoServer("plain", world.loopback())
    world.at_end(server.close)
    return server


def start(world, how):
    world.weir.binary = WITHOUT_INSIDE if how == "built without" else BINARY
    world.weir.start("off", *(["--inside", "off"] if how == "off" else []))


def attach_words(server, *more):
    return "attach", "web", "--port", server.port, "--netns", server.place.server_ns.path, "--inside", "see", *more


def probes(world):
    return [pin.name for pin in world.pins.glob("net-*/inside*")]


@pytest.mark.parametrize("how", OFF)
def test_attach_is_refused(world, server, how):
    start(world, how)
    assert OFF[how] in world.weir.refused(*attach_words(server))
    assert OFF[how] in world.weir.refused(*attach_words(server, "--write-memory"))
    assert world.weir.servers() == [] and probes(world) == []


@pytest.mark.parametrize("how", OFF)
def test_what_was_seen_is_seen_no_more(world, server, how):
    """The next agent takes the probes off, keeps the server attached, and says why; a further one sees again."""
    world.weir.start()
    world.weir(*attach_words(server))
    assert server.get("/a") == ["200 HTTP/2.0 /a"]
    world.weir.kill()
    start(world, how)
    inside = world.weir.server()["inside"]
    assert (inside["asked"], inside["lane"], inside["why"]) == ("see", "off", OFF[how])
    assert f"inside: off: {OFF[how]}" in world.weir("status")
    assert probes(world) == []
    assert server.get("/b") == ["200 HTTP/2.0 /b"]
    assert world.weir.server()["seen_inside"] == {"seen": 1}
    world.weir.stop()
    start(world, "on")
    eventually(lambda: world.weir.server()["inside"]["lane"] == "see", "it is looked into again")
    assert server.get("/c") == ["200 HTTP/2.0 /c"]
    assert world.weir.server()["seen_inside"] == {"seen": 2}


def test_nothing_of_it_is_built():
    assert b"weir_inside_attributes" in BINARY.read_bytes()
    assert b"weir_inside_attributes" not in WITHOUT_INSIDE.read_bytes()
