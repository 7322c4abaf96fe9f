# SPDX-License-Identifier: GPL-2.0
"""Clients and upsets, picked by chance again and again, until the time is over or something is wrong."""
import asyncio
import collections
import contextlib
import importlib
import random
import time
import traceback
from pathlib import Path

from connection import Gone
from kernel_log import KernelLog

HERE = Path(__file__).resolve().parent
PATIENCE_S = 120
PROGRESS_S = 5
EVENTS = 40

USERS = ["alice", "bob", *(f"user-{i}" for i in range(12))]
NAMESPACES = 6
PATHS = ("/", "/version", "/api/v1/namespaces/ns{}/pods", "/api/v1/namespaces/ns{}/secrets", "/heavy/x")


class Violation(Exception):
    pass


def modules(folder, names):
    """The files of a folder, by name; those named, where there are names."""
    found = {path.stem: importlib.import_module(f"{folder}.{path.stem}")
             for path in sorted((HERE / folder).glob("*.py")) if path.stem != "__init__"}
    if names == ["none"]:
        return {}
    if unknown := set(names) - set(found):
        raise SystemExit(f"no such file in {folder}: {', '.join(sorted(unknown))}; there are {', '.join(found)}")
    return {name: module for name, module in found.items() if not names or name in names}


class Visit:
    """What one client does; its connections end with it."""

    def __init__(self, site, chance):
        self.site, self.chance = site, chance
        self.connections = []

    async def connect(self, server="web", user=None, **how):
        connection = await self.site.connect(server, user, **how)
        self.connections.append(connection)
        return connection

    def user(self):
        """One of those who are there all the time."""
        return self.chance.choice(USERS)

    def place(self):
        return self.chance.choice(self.site.places.all)

    def path(self):
        """A path in some namespace, or in none."""
        return self.chance.choice(PATHS).format(self.chance.randrange(NAMESPACES))

    def end(self):
        for connection in self.connections:
            self.site.forget(connection)


class Soak:
    def __init__(self, seed, number, directory, clients, upsets):
        self.seed = seed
        self.number = number
        self.clients = modules("clients", clients)
        self.upsets = modules("upsets", upsets)
        self.visits = collections.Counter()
        self.events = collections.deque(maxlen=EVENTS)
        self.log = open(directory / "events", "w", encoding="utf-8", buffering=1)  # pylint: disable=consider-using-with
        self.began = time.monotonic()
        self.violation = None
        self.wrong = asyncio.Event()
        self.tasks = set()
        self.resting = False
        self.kernel_log = KernelLog()

    def now(self):
        return time.monotonic() - self.began

    def note(self, what):
        self.events.append((self.now(), what))
        self.log.write(f"{self.now():9.3f}  {what}\n")

    def violate(self, what, connection=None):
        """The first one ends the run."""
        if not self.violation:
            lines = [f"{self.now():.3f} s, seed {self.seed}: {what}", "what was done last:"]
            lines += [f"  {when:9.3f}  {event}" for when, event in self.events]
            if connection:
                lines.append(f"the connection, from {connection.opened_ns / 1e9 - self.began:.3f} s on:")
                lines += [f"  {when - self.began:9.3f}  {event}" for when, event in connection.history]
            self.violation = "\n".join(lines)
            print(f"VIOLATION after {self.violation}", flush=True)
            self.resting = True
            self.wrong.set()
        raise Violation(what)

    def guarded(self, work):
        """A task whose failure is a violation."""
        async def run():
            try:
                return await work
            except (Violation, asyncio.CancelledError):
                raise
            except Exception:  # pylint: disable=broad-except
                with contextlib.suppress(Violation):
                    self.violate(traceback.format_exc())
        task = asyncio.create_task(run())
        self.tasks.add(task)  # the loop itself does not keep them
        task.add_done_callback(self.tasks.discard)
        return task

    def pick(self, folder, site, chance):
        """A module for this site, by its weight."""
        usable = [module for module in folder.values() if site.name in getattr(module, "SITES", ("main",))]
        return chance.choices(usable, [getattr(module, "WEIGHT", 1) for module in usable])[0] if usable else None

    async def visitor(self, site, number):
        """One client after the other."""
        chance = random.Random(f"{self.seed} {site.name} client {number}")
        while not self.resting and (module := self.pick(self.clients, site, chance)):
            visit = Visit(site, chance)
            try:
                await module.visit(visit)
            except Gone:
                pass
            finally:
                visit.end()
            self.visits[module.__name__] += 1

    async def upsetter(self, site):
        chance = random.Random(f"{self.seed} {site.name} upsets")
        while not self.resting and (module := self.pick(self.upsets, site, chance)):
            await module.upset(site, chance)
            self.visits[module.__name__] += 1
            await asyncio.sleep(chance.random() * site.calm_s)

    async def watch(self, sites):
        """Looks all the time for what must never be, and says how far things are."""
        said = self.now()
        while True:
            await asyncio.sleep(1)
            for site in sites:
                site.check_patience(PATIENCE_S)
                site.check_agent()
            self.check_kernel()
            if self.now() - said >= PROGRESS_S:
                said = self.now()
                print(f"  {said:4.0f} s  " + "; ".join(site.progress() for site in sites), flush=True)

    def check_kernel(self):
        if lines := self.kernel_log.warnings():
            self.violate("the kernel's log: " + "\n".join(lines))

    async def traffic(self, sites, duration_s):
        """Clients and upsets for so long; then those that are there come to their end."""
        self.resting = False
        tasks = [self.guarded(self.visitor(site, number)) for site in sites for number in range(site.visitors)]
        upsetters = [self.guarded(self.upsetter(site)) for site in sites]
        await self.unless_wrong(asyncio.sleep(duration_s))
        self.resting = True
        await self.unless_wrong(asyncio.gather(*tasks, *upsetters))

    async def unless_wrong(self, work):
        """Waits for it, and no longer when something is wrong."""
        work, wrong = asyncio.ensure_future(work), asyncio.create_task(self.wrong.wait())
        await asyncio.wait((work, wrong), return_when=asyncio.FIRST_COMPLETED)
        wrong.cancel()
        if self.violation:
            work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await work
            raise Violation
        return await work
