# SPDX-License-Identifier: GPL-2.0
"""What it costs a server to be looked into."""
import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from figures import number, ratios, spread, table
from lib.inside import program
from lib.process import end, eventually, run
from machine import BUILD, CLIENT_CPU, FAR, ROOT, SERVER_CPU, answers, pinned, run_statistics

sys.path.append(str(ROOT / "tests/inside"))

RATE = 1000
STREAMS = 16
OWN, KUBE, LOOP = 8010, 6443, 8011
LOOP_REQUESTS = 5000
EMPTY, SEE_AND_LIMIT = "an empty program", "see, and a limit"
OPEN = (("open", "--key", "user", "--in-flight", 100000),)
PATHS = {OWN: "/list/dev/pods", KUBE: "/api/v1/namespaces/default"}


class Own:
    """The server of tests/inside that authorizes as Kubernetes does."""

    name = "a small server"
    port = OWN
    where = ()

    def __init__(self, machine):
        self.pid = machine.start("inside", [program("apiserver"), "serve", f"127.0.0.1:{OWN}"], OWN)

    def ask(self, requests):
        url = f"https://127.0.0.1:{OWN}{PATHS[OWN]}"
        run(program("client"), "-header", "X-User=alice", *load(requests), url, preexec_fn=pinned(CLIENT_CPU))


class RealKube:
    """A kube-apiserver 1.20.2, where tests/inside/get has made one."""

    name = "kube-apiserver 1.20.2"
    port = KUBE

    def __init__(self, machine):
        from kube import Kube
        self.kube = Kube(f"weir-bench-{os.getpid()}", machine.dir / "kube")
        machine.cleanup.callback(self.kube.end)
        self.kube.start_etcd()
        self.kube.start_1_20()
        self.pid = self.kube.pid()
        self.where = "--netns", self.kube.namespace.path
        os.sched_setaffinity(self.pid, {1 - CLIENT_CPU})

    def ask(self, requests):
        counts = self.kube.ask("admin", PATHS[KUBE], requests, *load(requests)[2:])
        assert counts["200"] == requests, counts


class Loop:
    """It makes its requests itself, one after the other: what looks into it is most of what they take."""

    def __init__(self, machine):
        self.process = subprocess.Popen([program("loop"), f"127.0.0.1:{LOOP}"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, preexec_fn=pinned(SERVER_CPU))
        machine.cleanup.callback(end, self.process)
        eventually(lambda: answers(LOOP), "the loop listens")

    def request_ns(self):
        self.process.stdin.write(f"again {LOOP_REQUESTS}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


def load(requests):
    return "-n", requests, "-qps", RATE, "-streams", STREAMS


def has_kube():
    return bool(os.environ.get("INSIDE_DIR")) and (Path(os.environ["INSIDE_DIR"]) / "bin/kube-apiserver").exists()


def cpu_s(pid):
    """Of the process: its clock's number is made of its id (clock_getcpuclockid)."""
    return time.clock_gettime((~pid << 3) | 2)


def cost(server, requests):
    """Microseconds of the server's CPU for one request."""
    before = cpu_s(server.pid)
    server.ask(requests)
    return (cpu_s(server.pid) - before) * 1e6 / requests


def programs_of(pid):
    """The BPF programs that a process has descriptors of. (What bpftool says of processes, not every kernel lets it find out.)"""
    texts = [path.read_text() for path in Path(f"/proc/{pid}/fdinfo").iterdir()]
    return {int(line.split()[1]) for text in texts for line in text.splitlines() if line.startswith("prog_id:")}


def hits(machine):
    """
    (ns, times) of the agent's programs on probes inside servers, since they were loaded. Those that follow processes, and the agent's
    sweep, run in no request.
    """
    own = programs_of(machine.weir.process.pid)
    programs = [one for one in json.loads(run("bpftool", "-j", "prog", "show"))
                if one["type"] == "kprobe" and one.get("name", "").startswith("weir_inside") and one["id"] in own]
    return [sum(one.get(field, 0) for one in programs) for field in ("run_time_ns", "run_cnt")]


def cost_off(machine, server, requests):
    """Microseconds a request."""
    with machine.attached("--port", server.port, *server.where, "--inside", "off", limits=FAR[:1]):
        return cost(server, requests)


def cost_seen(machine, server, requests):
    """(microseconds a request, ns of the programs a hit, hits a request). No group is exempt: each user is asked for the limit."""
    with machine.attached("--port", server.port, *server.where, "--inside", "see", "--exempt-group", "", limits=FAR[:1]):
        us = cost(server, requests)
        with run_statistics():
            server.ask(requests)
            ns, times = hits(machine)
    return us, ns / times, times / requests


def measure(machine, server, pace):
    """
    In each round: microseconds a request, off and when it is seen and decided; what the programs took of a hit; how often. Which of the
    two is first alternates: a server that takes more from round to round would count for the second.
    """
    requests = int(RATE * pace.long)
    off, see = [], []
    server.ask(requests)
    for i in range(2 * pace.rounds):
        if i % 2:
            see.append(cost_seen(machine, server, requests))
        off.append(cost_off(machine, server, requests))
        if not i % 2:
            see.append(cost_seen(machine, server, requests))
    us, hit_ns, often = zip(*see)
    return off, us, hit_ns, median(often)


def place_of(machine, binary):
    """The file's offset of the instruction where a request's authorization begins: `see` has its probe there."""
    found = machine.weir.json("probe", "--binary", binary)["found"]
    (authorization,) = [one for one in found if one["finding"] == "authorization"]
    return authorization["places"][0]["offset"]


@contextlib.contextmanager
def empty_program(binary, offset):
    """One that does nothing, where weir's would be."""
    process = subprocess.Popen([BUILD / "empty_probe", binary, offset], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True)
    try:
        assert process.stdout.readline() == "attached\n"
        yield
    finally:
        process.communicate(timeout=10)


def measure_loop(machine, pace):
    """The least nanoseconds of one request, in turns: off; see; see and decide by a limit; also where requests end."""
    loop = Loop(machine)
    offset = place_of(machine, program("loop"))
    off, see = ("--inside", "off"), ("--inside", "see")
    ways = {"off": (off, ()), EMPTY: (off, ()), "see": (see, ()), SEE_AND_LIMIT: (see, FAR[:1]),
            "see, and a limit on requests in flight": (see, OPEN)}
    least = dict.fromkeys(ways, float("inf"))
    loop.request_ns()
    for _ in range(2 * pace.rounds):
        for way, (options, limits) in ways.items():
            empty = empty_program(program("loop"), offset) if way == EMPTY else contextlib.nullcontext()
            with machine.attached("--port", LOOP, *options, limits=limits), empty:
                least[way] = min(least[way], loop.request_ns())
    return least


def report(machine, pace):
    servers = [Own(machine)] + ([RealKube(machine)] if has_kube() else [])
    rows, targets = [], []
    for server in servers:
        off, see, hit_ns, a_request = measure(machine, server, pace)
        more = [100 * (ratio - 1) for ratio in ratios(see, off)]
        rows.append([server.name, spread(off), spread(see), spread(more), number(a_request), spread(hit_ns)])
        targets.append((f"{server.name}: see and decide, one hit's program, ns", min(hit_ns), "<=", 2000))
        if server.port == KUBE:
            targets.append((f"{server.name}: see and decide, more CPU at {RATE:,} requests/s, %", median(more), "<=", 2))
    least = measure_loop(machine, pace)
    seen_ns = least[SEE_AND_LIMIT] - least[EMPTY]
    targets.append(("a server without a network: see and decide, more ns a request than an empty program", seen_ns, "<=", 1500))
    loop = table(["", *least], [["a request, ns", *map(number, least.values())]])
    head = ["", "off, us", "see, us", "more, %", "hits a request", "a hit's program, ns"]
    missing = "" if has_kube() else "\nA kube-apiserver was not measured: INSIDE_DIR names none (tests/inside/get).\n"
    return f"""## What it costs to be looked into

The server's CPU time for one request, over TLS and HTTP/2, at {RATE:,} requests/s on one connection, {STREAMS} at a time: attached
with `--inside off`, and with `--inside see`, in turns, of which each is first every other time; with a limit of the user that everybody stays below. A hit's program is what the kernel says
of the programs' time; the trap around it is in the CPU time. What else runs while a program is preempted counts as the program's time. So its
least round counts.

{table(head, rows)}{missing}
A server that makes such requests itself, one after the other, the trap counted in; the least of several rounds of {LOOP_REQUESTS:,}, in turns.
The empty program stands where weir's does: what it takes, each probe takes.

{loop}
""", targets
