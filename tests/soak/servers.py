# SPDX-License-Identifier: GPL-2.0
"""A place with servers, their limits, and an agent of its own."""
import asyncio
import subprocess
import sys
import time
from pathlib import Path

from connection import Connection, TlsConnection
from agent_size import rss_kib
from ledger import FATES, Ledger
from places import Places
from lib.process import run
from lib.weir import Weir

HERE = Path(__file__).resolve().parent
TRUSTED = ("10.9.7.0/24", "fd00:7::/64", "127.0.0.0/8")


class Server:
    """comes_and_goes: it is detached and attached while there is traffic."""

    def __init__(self, name, port, attach=(), tls=False, comes_and_goes=False):
        self.name, self.port, self.tls, self.comes_and_goes = name, port, tls, comes_and_goes
        self.options = attach
        self.limits = []
        self.reset_ns = 0  # when its connections were last reset by a command

    def __str__(self):
        return self.name

    def resets_since(self, moment_ns):
        return self.reset_ns >= moment_ns

    def limit(self, name):
        (limit,) = [limit for limit in self.limits if limit.name == name]
        return limit


class Site:
    agent_options = ()
    visitors = 24
    calm_s = 0.5  # between upsets, at most

    def __init__(self, soak, directory, bpffs):
        self.soak = soak
        self.name = type(self).__name__.lower()
        self.violate = soak.violate
        self.ledger = Ledger(soak.violate)
        self.directory = directory / self.name
        self.directory.mkdir()
        unique = f"weir-soak-{self.name}-{soak.number}"
        self.weir = Weir(self.directory, bpffs / unique)
        self.places = Places(unique)
        self.servers = {server.name: server for server in self.make_servers()}
        self.connections = set()
        self.process = None
        self.agent_may_end = False

    def make_servers(self):
        raise NotImplementedError

    async def set_up(self):
        """Attaches the servers, and sets their first limits."""
        raise NotImplementedError

    async def start(self):
        certificate, key = self.directory / "tls.crt", self.directory / "tls.key"
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=soak",
            "-days", "2", "-keyout", key, "-out", certificate)
        ports = [f"{server.port}:tls" if server.tls else str(server.port) for server in self.servers.values()]
        command = self.places.server_ns.command(sys.executable, HERE / "server.py", certificate, key, *ports)
        with open(self.directory / "server.errors", "wb") as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
        assert self.process.stdout.readline() == b"listening\n", (self.directory / "server.errors").read_text()
        await self.start_agent()
        await self.set_up()

    async def listen(self):
        """Follows what the server says."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), self.process.stdout)
        rest = b""
        while data := await reader.read(1 << 16):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self.ledger.server_says(line.decode())
        self.violate(f"the server of {self.name} has ended: {(self.directory / 'server.errors').read_text()[-500:]}")

    # --- the agent and its commands

    async def start_agent(self):
        self.note("the agent starts")
        await asyncio.to_thread(self.weir.start, "off", *self.agent_options)
        self.agent_may_end = False

    def kill_agent(self):
        self.note("the agent is killed")
        self.agent_may_end = True
        self.weir.kill()

    async def stop_agent(self):
        self.note("the agent is told to end")
        self.agent_may_end = True
        await asyncio.to_thread(self.weir.stop)

    def check_agent(self):
        if not (self.agent_may_end or self.weir.running()):
            self.violate(f"the agent of {self.name} has ended by itself (exit status {self.weir.process.returncode}): "
                         f"{self.weir.log()[-1000:]}")

    def note(self, what):
        self.soak.note(f"{self.name}: {what}")

    async def command(self, *words):
        """A command that must succeed; returns its output."""
        self.note("weir " + " ".join(map(str, words)))
        return await asyncio.to_thread(self.weir, *words)

    async def attach(self, server):
        await self.command("attach", server.name, "--port", server.port, "--netns", self.places.server_ns.path,
                           *(word for network in TRUSTED for word in ("--trusted-proxy", network)), *server.options)

    async def set_rate(self, server, name, qps, burst, *rules, subject=None):
        """Sets a limit that `server.limits` has."""
        with server.limit(name).changing((qps, burst), subject):
            await self.command("limit", "set", name, *([subject] if subject else []), *rules, "--qps", qps, "--burst", burst,
                               "--server", server.name)

    async def set_in_flight(self, server, name, n, *rules):
        with server.limit(name).changing(n):
            await self.command("limit", "set", name, *rules, "--in-flight", n, "--server", server.name)

    # --- clients

    async def connect(self, server="web", user=None, place=None, source=None, receive_bytes=None):
        server = self.servers[server]
        kind = TlsConnection if server.tls else Connection
        connection = kind(self, server, place or self.places.veth, user, source)
        self.connections.add(connection)
        try:
            await connection.open(receive_bytes)
        except ConnectionError as error:
            self.violate(f"cannot connect to {server}: {error}", connection)
        return connection

    def forget(self, connection):
        """The connection is none any more, whatever was to come on it."""
        if connection.socket.fileno() >= 0:
            connection.leave()
        self.connections.discard(connection)

    def check_patience(self, patience_s):
        """Nothing hangs: what is waited for comes, or ends."""
        now = time.monotonic()
        for connection in self.connections:
            if connection.waits_since and now - connection.waits_since > patience_s:
                self.violate(f"a connection of {connection.user or connection.source} at {connection.server} has been "
                             f"silent for {now - connection.waits_since:.0f} s", connection)

    def progress(self):
        ledger = self.ledger
        fates = {fate: sum(n for (_, what), n in ledger.fates.items() if what == fate) for fate in FATES}
        agent = f"agent {rss_kib(self.weir) / 1024:.1f} MiB" if self.weir.running() else "no agent"
        return (f"{self.name}: {sum(ledger.asked.values())} asked, " + ", ".join(f"{n} {fate}" for fate, n in fates.items()) +
                f", {len(self.connections)} connections, {agent}")

    # --- the end

    def keep(self):
        """What is left to look at after a violation."""
        for words in (("status", "--json"), ("metrics",)) if self.weir.running() else ():
            (self.directory / f"{words[0]}.txt").write_text(self.weir.run(*words).stdout)
        for name in ("conns", "in_flight"):
            for pin in self.weir.pins.glob(f"net-*/{name}"):
                with open(self.directory / f"{name}.json", "wb") as out:
                    subprocess.run(["bpftool", "map", "dump", "pinned", pin, "--json", "--pretty"], stdout=out, check=False)

    def stop(self):
        """Ends everything; returns what is left behind."""
        left = []
        try:
            if not self.weir.running():
                self.weir.start("off", *self.agent_options)
            self.weir("detach", "--all", "--force")
            left += [f"server {server['name']}" for server in self.weir.servers()] + self.places.leftovers()
            self.weir.stop()
            left += [str(pin) for pin in self.weir.pins.rglob("*")]
            if self.weir.pins.exists():
                self.weir.pins.rmdir()
        finally:
            if self.process:
                self.process.kill()
                self.process.wait()
            self.places.delete()
        return left
