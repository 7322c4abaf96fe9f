# SPDX-License-Identifier: GPL-2.0
"""Servers of net/http as several versions of Go make them: HTTP/1.1 and HTTP/2, with TLS or without, seen and refused inside."""
import shutil

import pytest

from kube import GOT
from lib.inside import GoServer, program
from lib.process import eventually, run
from lib.weir import BINARY, OTHER_PROGRAMS
from seeing import lane, look_into, shared_world

COMPILERS = ["go", *sorted(str(path) for path in GOT.glob("go/1.*/bin/go"))]
REQUESTS = 20
BURST = 6


@pytest.fixture(scope="module")
def world(tmp_path_factory, bpffs):
    with shared_world(tmp_path_factory.mktemp("world"), bpffs) as world:
        world.weir.start()
        yield world


@pytest.fixture(scope="module")
def place(world):
    return world.loopback()


@pytest.fixture
def start(world, place):
    """Starts servers, and looks into those that have a lane. They are gone when the test ends."""
    servers = []

    def start(binary, mode="serve", where=place, lane="see", port=None):
        server = GoServer("a server", where, port or world.port(), binary=binary, mode=mode)
        servers.append(server)
        if lane:
            look_into(world, "web", server.port, where.server_ns, lane)
        return server
    yield start
    world.weir.run("detach", "web", "--force")
    for server in servers:
        server.close()


@pytest.fixture(params=COMPILERS, ids=lambda path: path.split("/")[-3] if "/" in path else "of the machine")
def serve(request, world, start):
    """Starts a server that this compiler has made."""
    if not shutil.which(request.param):
        pytest.skip("there is no go (golang-go)")

    def serve(name, mode="serve", lane="see"):
        server = start(program(name, request.param), mode, lane=lane)
        server.version = run(request.param, "env", "GOVERSION").strip()
        assert server.version in world.weir.server()["inside"]["text"]
        return server
    return serve


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
    return [server.place.client_ns.run("curl", "-sS", "--max-time", "60", "-w", " %{http_code}", *options,
                                       f"http://{server.address}/a").replace("\n", "") for _ in range(REQUESTS)]


def test_without_tls(world, serve):
    """Its packets are read: it is counted there."""
    server = serve("plain", "serve-plain")
    assert curl(server) == ["HTTP/1.1 /a 200"] * REQUESTS
    assert seen(world) == {"on_wire": REQUESTS}
    assert world.weir.server()["passed"] == REQUESTS


@pytest.fixture
def serve_http2(serve):
    """HTTP/2 without TLS."""
    def start(lane="see"):
        server = serve("plain", "serve-plain", lane)
        if server.version < "go1.24":
            pytest.skip("this Go has no HTTP/2 without TLS")
        return server
    return start


def test_http2_without_tls(world, serve_http2):
    assert curl(serve_http2(), "--http2-prior-knowledge") == ["HTTP/2.0 /a 200"] * REQUESTS
    assert seen(world) == {"seen": REQUESTS}


# --- refused


def limit(world, *of):
    world.weir("limit", "set", *of, "--qps", 0, "--burst", BURST)


def refused(world, n):
    """Each that was refused has been answered by the server."""
    assert (world.weir.server()["shed"], seen(world)["answered"]) == (n, n)


def test_tls_refused(world, serve):
    """The limit is one for both protocols."""
    server = serve("plain", lane="answer")
    limit(world, "total")
    assert server.get("/a", times=REQUESTS) == ["200 HTTP/2.0 /a"] * BURST + ["429"] * (REQUESTS - BURST)
    assert server.get("/a", times=REQUESTS, protocol="http1") == ["429"] * REQUESTS
    refused(world, 2 * REQUESTS - BURST)


def test_users_refused(world, serve):
    server = serve("apiserver", lane="answer")
    limit(world, "user", "alice")
    statuses = [answer.split()[0] for answer in server.get("/list/dev/pods", "alice", REQUESTS)]
    assert statuses == ["200"] * BURST + ["429"] * (REQUESTS - BURST)
    assert server.get("/list/dev/pods", "bob", REQUESTS) == ["200 HTTP/2.0 /list/dev/pods"] * REQUESTS
    refused(world, REQUESTS - BURST)


def test_http2_without_tls_refused(world, serve_http2):
    server = serve_http2("answer")
    limit(world, "total")
    assert curl(server, "--http2-prior-knowledge") == ["HTTP/2.0 /a 200"] * BURST + [" 429"] * (REQUESTS - BURST)
    refused(world, REQUESTS - BURST)


# --- what becomes of servers and agents


def all_refused(world, server):
    limit(world, "total")
    assert server.get("/a", times=BURST) == ["200 HTTP/2.0 /a"] * BURST
    none_left(world, server)


def none_left(world, server):
    before = seen(world).get("answered", 0)
    assert server.get("/a", times=3) == ["429"] * 3
    assert seen(world)["answered"] - before == 3


def test_containers_of_one_image(world, place, start):
    """Two cgroups and two namespaces share a binary, whose probes run in both: only one of them refuses."""
    one = start(program("plain"), lane="answer")
    two = start(program("plain"), where=world.loopback_elsewhere(), lane=None)
    for server, name in (one, "one"), (two, "two"):
        (world.cgroup(name) / "cgroup.procs").write_text(str(server.process.pid))
    all_refused(world, one)
    assert two.get("/a", times=REQUESTS) == ["200 HTTP/2.0 /a"] * REQUESTS
    none_left(world, one)
    assert world.weir.server()["shed"] == 6


def test_replaced(world, start, tmp_path):
    """Under its path, by what other versions of Go have made: nothing is where it was."""
    if len(COMPILERS) < 2:
        pytest.skip("there is one Go only (tests/inside/get)")
    path = tmp_path / "server"
    server = None
    for compiler in COMPILERS:
        shutil.copy(program("plain", compiler), tmp_path / "new")
        (tmp_path / "new").rename(path)
        if not server:
            server = start(path, lane="answer")
            all_refused(world, server)
            continue
        server.close()
        server = start(path, port=server.port, lane=None)
        eventually(lambda: lane(world, "web") == "answer" and
                   [process["pid"] for process in world.weir.server()["inside"]["processes"]] == [server.process.pid],
                   "the next one is looked into")
        none_left(world, server)


def test_upgraded(world, start):
    """The agent is killed, and followed by one whose programs are others, and back."""
    server = start(program("plain"), lane="answer")
    all_refused(world, server)
    for binary in OTHER_PROGRAMS, BINARY:
        world.weir.kill()
        assert server.get("/a", times=3) == ["429"] * 3
        world.weir.binary = binary
        world.weir.start()
        eventually(lambda: lane(world, "web") == "answer", "the next agent has taken over")
        none_left(world, server)
