# SPDX-License-Identifier: GPL-2.0
"""Servers of net/http as several versions of Go make them: HTTP/1.1 and HTTP/2, with TLS or without."""
import shutil

import pytest

from kube import GOT
from lib.inside import GoServer, program
from lib.process import run

COMPILERS = ["go", *sorted(str(path) for path in GOT.glob("go/1.*/bin/go"))]
REQUESTS = 20


@pytest.fixture(params=COMPILERS, ids=lambda path: path.split("/")[-3] if "/" in path else "of the machine")
def serve(request, world):
    """Starts a server, and looks into it."""
    if not shutil.which(request.param):
        pytest.skip("there is no go (golang-go)")
    place = world.loopback()
    world.weir.start()

    def start(name, mode="serve"):
        server = GoServer(name, place, binary=program(name, request.param), mode=mode)
        world.at_end(server.close)
        world.weir("attach", "web", "--port", server.port, "--netns", place.server_ns.path, "--inside", "see")
        server.version = run(request.param, "env", "GOVERSION").strip()
        assert server.version in world.weir.server()["inside"]["text"]
        return server
    return start


def seen(world):
    return world.weir.server()["seen_inside"]


@pytest.mark.parametrize("protocol", ["http1", "http2"])
def test_tls(world, serve, protocol):
    server = serve("plain")
    said = "HTTP/1.1" if protocol == "http1" else "HTTP/2.0"
    assert server.get("/a?b=c", times=REQUESTS, protocol=protocol) == [f"200 {said} /a?b=c"] * REQUESTS
    assert seen(world) == {"seen": REQUESTS}


def test_users(world, serve):
    server = serve("apiserver")
    trace = world.trace()
    assert server.get("/list/dev/pods", "alice", REQUESTS) == ["200 HTTP/2.0 /list/dev/pods"] * REQUESTS
    assert {(request["user"], request["verb"], request["namespace"], request["resource"]) for request in trace.end()} == \
        {("alice", "list", "dev", "pods")}
    assert seen(world) == {"seen": REQUESTS}


def curl(server, *options):
    """Each on a connection of its own: curl 7.88 cannot use one again for HTTP/2 without TLS."""
    return [server.place.client_ns.run("curl", "-sS", "--max-time", "60", *options, f"http://{server.address}/a").strip()
            for _ in range(REQUESTS)]


def test_without_tls(world, serve):
    """Its packets are read: it is counted there."""
    server = serve("plain", "serve-plain")
    assert curl(server) == ["HTTP/1.1 /a"] * REQUESTS
    assert seen(world) == {"on_wire": REQUESTS}
    assert world.weir.server()["passed"] == REQUESTS


def test_http2_without_tls(world, serve):
    server = serve("plain", "serve-plain")
    if server.version < "go1.24":
        pytest.skip("this Go has no HTTP/2 without TLS")
    assert curl(server, "--http2-prior-knowledge") == ["HTTP/2.0 /a"] * REQUESTS
    assert seen(world) == {"seen": REQUESTS}
