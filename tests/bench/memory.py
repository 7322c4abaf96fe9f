# SPDX-License-Identifier: GPL-2.0
"""What connections take of the kernel's memory, by what a memory cgroup says: the agent is in one of its own when it makes its maps."""
import contextlib
import os
import subprocess
from pathlib import Path

from figures import number, table
from machine import BUILD, METRICS, NGINX

# Of both versions: where cgroups are made, and the file that tells the kernel's memory; by which name, if it tells more.
VERSIONS = ("/sys/fs/cgroup/memory", "memory.kmem.usage_in_bytes", None), ("/sys/fs/cgroup", "memory.stat", "kernel")
MAPS = {"at rest": ("resting", "resting"), "awake": ("conns", "awake")}  # of each kind: the map, and what `conns` calls it
FEW = 10  # connections that a table has room for: what it takes then is nothing to do with them


class Cgroup:
    def __init__(self):
        self.path = Path("-")
        for mount, file, self.name in VERSIONS:
            self.path = Path(mount) / f"weir-bench-{os.getpid()}"
            self.file = self.path / file
            with contextlib.suppress(OSError):
                self.path.mkdir(exist_ok=True)
                self.bytes()
                return
        raise RuntimeError("no memory cgroup tells what the kernel takes")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.path.rmdir()

    def take_in(self, pid):
        (self.path / "cgroup.procs").write_text(str(pid))

    def bytes(self):
        text = self.file.read_text()
        return int(dict(line.split() for line in text.splitlines())[self.name] if self.name else text)


def slabs():
    """{cache: (objects, bytes of one)}"""
    lines = [line.split() for line in Path("/proc/slabinfo").read_text().splitlines()[2:]]
    return {fields[0]: (int(fields[1]), int(fields[3])) for fields in lines}


def grown(before, after):
    """The cache that has got the most objects."""
    name = max(after, key=lambda name: after[name][0] - before.get(name, (0, 0))[0])
    return f"{name}: {after[name][1]}"


def taken(machine, room, kind=None, n=0):
    """(bytes from before attach on, bytes of all n connections, their slab) of an agent with room for so many connections."""
    machine.weir.start(METRICS, "--connections", room)
    with Cgroup() as cgroup:
        cgroup.take_in(machine.weir.process.pid)
        begin = cgroup.bytes()
        with machine.attached("--port", NGINX):
            before, slabs_before = cgroup.bytes(), slabs()
            if n:
                pin, name = MAPS[kind]
                subprocess.run([BUILD / "conns", machine.pin(pin), name, str(n), "0"], check=True)
            after = cgroup.bytes()
            slab = grown(slabs_before, slabs())
        machine.weir.start(METRICS)
    return after - begin, after - before, slab


def report(machine, pace):
    n = pace.connections
    without, _, _ = taken(machine, FEW)
    rows = []
    for kind in MAPS:
        everything, entries, slab = taken(machine, n, kind, n)
        rows.append((kind, entries / n, slab, (everything - without) / 1e6))
    text = f"""## Memory of connections

By the agent's memory cgroup, of {n:,} connections each: what an entry takes with the kernel's header, its slab, and what all of them take with
the tables that have room for them, which are always taken.

{table(["", "bytes of one", "its slab", "all of it, MB"], [[kind, number(one), slab, number(mb)] for kind, one, slab, mb in rows])}"""
    (_, one, _, mb), *_ = rows
    yield text, {"resting, one": one, "resting, all": mb}
