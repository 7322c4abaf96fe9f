# SPDX-License-Identifier: GPL-2.0
"""A world of a test: namespaces, servers, an agent. It leaves nothing behind, and that is checked."""
import contextlib
import functools
import itertools
import subprocess
from pathlib import Path

import pytest

from lib import netns
from lib.others import RealServer
from lib.process import eventually, run
from lib.server import EchoServer
from lib.site import Site
from lib.trace import Trace
from lib.weir import Weir


class World:
    def __init__(self, name, directory, bpffs):
        self.name = name
        self.directory = directory
        self.bpffs = bpffs
        self.namespaces = []
        self.endings = contextlib.ExitStack()

    @functools.cached_property
    def pins(self):
        return self.bpffs / self.name

    @functools.cached_property
    def ports(self):
        return itertools.count(8080)

    @functools.cached_property
    def weir(self):
        return Weir(self.directory, self.pins)

    def mount_bpffs(self):
        """One of its own, before the agent begins: what happens to it happens to nobody else."""
        self.bpffs = self.directory / "bpf"
        self.bpffs.mkdir()
        run("mount", "-t", "bpf", "weir-test", self.bpffs)
        self.at_end(run, "umount", "-l", self.bpffs)

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

    def address(self, namespace, address, device="eth0"):
        """One more, until the test ends."""
        self.endings.enter_context(namespace.address(address, device))

    def setting(self, namespace, name, value):
        """A sysctl, until the test ends."""
        self.endings.enter_context(namespace.setting(name, value))

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

    def port(self):
        """One where a server of the test may listen."""
        return next(self.ports)

    def echo(self, place, port=None):
        server = EchoServer(place.server_ns, place.address, port or self.port())
        self.at_end(server.close)
        return server

    def real_server(self, program, place, **options):
        options.setdefault("port", self.port())
        server = RealServer(program, place.server_ns, place.address, self.directory, **options)
        self.at_end(server.close)
        return server

    def agent(self):
        """weir, its agent running."""
        if not self.weir.running():
            self.weir.start()
        return self.weir

    def site(self, place=None, server=None):
        """A server behind an agent, on loopback unless a place is given; nothing is attached yet."""
        place = place or self.loopback()
        self.agent()
        return Site(self, place, server or self.echo(place))

    def attached(self):
        """A server of the test's has been attached."""

    def keep(self):
        """The test's servers are about to be detached: the programs are to stay, for those that come next."""

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
        self.agent()("detach", "--all", "--force")
        left = [f"server {server['name']}" for server in self.weir.servers()]
        left += [text for namespace in self.namespaces for text in namespace.leftovers()]
        self.weir.stop()
        left += [str(pin) for pin in self.pins.rglob("*")]
        if self.pins.exists():
            self.pins.rmdir()
        return left

    def changes(self):
        """What it has changed in places that others use after it."""
        return []

    def end(self):
        left = []
        try:
            left += self.end_weir()
        finally:
            self.endings.close()
            left += self.changes()
            for namespace in self.namespaces:
                namespace.delete()
        left += [path.name for path in Path("/run/netns").glob(f"{self.name}-*")]
        assert not left, f"left behind: {left}"
