# SPDX-License-Identifier: GPL-2.0
"""Each test has a world: namespaces, servers, an agent. It leaves nothing behind, and that is checked.

The tests of a module with `pytestmark = pytest.mark.together` share an agent and a loopback, but for those marked `alone`.
"""
import contextlib
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from lib import netns
from lib.others import RealServer
from lib.process import eventually, run
from lib.server import EchoServer
from lib.site import Site
from lib.trace import Trace
from lib.weir import BINARY, Weir


KEEPER = "keeper"
KEEPER_PORT = 7


@pytest.fixture(scope="session")
def bpffs(tmp_path_factory):
    """A bpffs of these tests' own: whatever is mounted elsewhere may be another one's, and read by it."""
    private = tmp_path_factory.mktemp("bpffs")
    run("mount", "-t", "bpf", "bpf", private)
    yield private
    run("umount", private)


class World:
    def __init__(self, name, directory, bpffs):
        self.name = name
        self.directory = directory
        self.pins = bpffs / name
        self.namespaces = []
        self.endings = contextlib.ExitStack()
        self.weir = Weir(directory, self.pins)

    def at_end(self, action, *arguments):
        self.endings.callback(action, *arguments)

    def namespace(self, role):
        namespace = netns.Netns(f"{self.name}-{role}")
        self.namespaces.append(namespace)
        return namespace

    def loopback(self, family=4):
        return netns.loopback(self.namespace("lo"), family)

    def loopback_elsewhere(self):
        return netns.loopback(self.namespace("lo2"), 4)

    def cgroup(self, name):
        """An empty directory of the cgroup2 hierarchy: no server's sockets are there."""
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
        roots = [where for _, where, kind, *_ in mounts if kind == "cgroup2"]
        if not roots:
            pytest.skip("no cgroup2 is mounted")
        directory = Path(roots[0]) / f"{self.name}-{name}"
        directory.mkdir()
        self.at_end(lambda: directory.exists() and directory.rmdir())
        return directory

    def veth(self, family=4):
        return netns.veth(self.namespace("s"), self.namespace("c"), family)

    def place(self, kind, family=4):
        return self.veth(family) if kind == "veth" else self.loopback(family)

    def echo(self, place, port=None):
        server = EchoServer(place.server_ns, place.address, port or self.port())
        self.at_end(server.close)
        return server

    def port(self):
        return 8080

    def attached(self):
        """A server of the test's has been attached."""

    def real_server(self, program, place, **options):
        server = RealServer(program, place.server_ns, place.address, self.directory, **options)
        self.at_end(server.close)
        return server

    def site(self, place=None, server=None):
        """A server behind an agent, on loopback unless a place is given; nothing is attached yet."""
        place = place or self.loopback()
        if not self.weir.running():
            self.weir.start()
        return Site(self, place, server or self.echo(place))

    def trace(self, *words):
        trace = Trace(self.weir, self.directory, *words)
        self.at_end(trace.kill)
        return trace

    @contextlib.contextmanager
    def table_trace(self):
        """The lines of a trace as a table, as they come."""
        path = self.directory / "table"
        with open(path, "wb") as out:
            process = subprocess.Popen(self.weir.command("trace"), env=self.weir.environment(), stdout=out,
                                       stderr=subprocess.DEVNULL)
        try:
            eventually(lambda: path.read_text().endswith("\n"), "the heads are there")
            yield lambda: path.read_text().splitlines()
        finally:
            process.kill()
            process.wait()

    def end_weir(self):
        """Detaches everything by the agent, and ends it. Says what is left."""
        if not self.weir.log_path.exists():
            return []
        if not self.weir.running():
            self.weir.start()
        self.weir("detach", "--all", "--force")
        left = [f"server {server['name']}" for server in self.weir.servers()]
        left += [text for namespace in self.namespaces for text in namespace.leftovers()]
        self.weir.stop()
        left += [str(pin) for pin in self.pins.rglob("*")]
        if self.pins.exists():
            self.pins.rmdir()
        return left

    def end(self):
        try:
            left = self.end_weir()
        finally:
            self.endings.close()
            for namespace in self.namespaces:
                namespace.delete()
        left += [path.name for path in Path("/run/netns").glob(f"{self.name}*")]
        assert not left, f"left behind: {left}"


class Common(World):
    """
    An agent, and a namespace in which a server that nobody uses keeps the programs while no other is attached: loading them
    takes a second.
    """

    def __init__(self, name, directory, bpffs):
        super().__init__(name, directory, bpffs)
        self.ports = iter(range(8080, 65536))
        self.place = self.loopback()
        self.keeper = self.echo(self.place, KEEPER_PORT)
        self.kept = False
        self.weir.start()

    def keep(self):
        if not self.kept:
            self.weir("attach", KEEPER, "--port", KEEPER_PORT, "--netns", self.place.server_ns.path)
            self.kept = True

    def let_go(self):
        if self.kept:
            self.weir("detach", KEEPER, "--force")
            self.kept = False


class Lent(World):
    """A common world for the time of one test. What its connections still send goes to a port that is not used again."""

    def __init__(self, name, directory, common):
        super().__init__(name, directory, common.pins.parent)
        self.common = common
        self.weir = common.weir

    def port(self):
        return next(self.common.ports)

    def loopback(self, family=4):
        return self.common.place if family == 4 else super().loopback(family)

    def attached(self):
        self.common.let_go()

    def end_weir(self):
        if not self.weir.running():
            self.weir.start()
        self.common.keep()
        for server in self.weir.servers():
            if server["name"] != KEEPER:
                self.weir("detach", server["name"], "--force")
        return [text for namespace in self.namespaces for text in namespace.leftovers()]


def pytest_configure(config):
    """Who is told to end cleans up behind himself, as after ^C."""
    config.addinivalue_line("markers", "together: the module's tests share an agent and a loopback")
    config.addinivalue_line("markers", "alone: not this test")
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """A drain takes a minute, TIME-WAIT and all: it begins before everything else, and is looked at last."""
    items.sort(key=lambda item: {"test_drain_begins": 0, "test_drain_ends": 2}.get(item.name, 1))


@pytest.fixture(scope="session")
def draining(tmp_path_factory, bpffs):
    """A site that was detached while connections of it were translated."""
    world = World(f"weir-drain-{os.getpid()}", tmp_path_factory.mktemp("drain"), bpffs)
    try:
        yield drain(world.site())
    finally:
        world.end()


def drain(site):
    site.attach()
    site.limit("user", burst=1)
    client, other = site.client(), site.client()
    assert client.drive(3) == [200, 429, 429]
    assert other.get("/refused") == 429
    assert "draining: 2 translated" in site.weir("detach", "web")
    assert client.drive(5) == [200] * 5
    return site


@pytest.fixture(scope="module")
def common(request, tmp_path_factory, bpffs):
    module = request.module.__name__.replace("_", "-")
    common = Common(f"weir-{module}-{os.getpid()}", tmp_path_factory.mktemp(module), bpffs)
    yield common
    common.end()


def world_of(request, tmp_path, bpffs):
    slug = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:60]
    name = f"weir-{slug}-{os.getpid()}"
    marked = request.node.get_closest_marker
    if marked("together") and not marked("alone"):
        return Lent(name, tmp_path, request.getfixturevalue("common"))
    return World(name, tmp_path, bpffs)


@pytest.fixture
def world(request, tmp_path, bpffs):
    assert BINARY.exists(), f"{BINARY} is not built"
    world = world_of(request, tmp_path, bpffs)
    yield world
    world.end()


@pytest.fixture
def site(world):
    """An echo server on loopback, attached, without limits."""
    site = world.site()
    site.attach()
    return site
