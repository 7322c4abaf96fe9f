# SPDX-License-Identifier: GPL-2.0
"""What it costs a server to be looked into."""
import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import NamedTuple

from figures import more_percent, number, spread, table
from lib.inside import program
from lib.process import end, eventually, run
from machine import BUILD, CLIENT_CPU, FAR, NGINX, ROOT, SERVER_CPU, answers, before_others, pinned, run_statistics
from pairs import RATE, ROUND_S, STREAMS, WAYS, measure_pairs

sys.path.append(str(ROOT / "tests/inside"))

AS_MANY_AS_IT_CAN = 0
WARM_UP, TURN_REQUESTS, PARTS = 100, 150, 4  # of a turn: in each part so many requests
BUSY_REQUESTS = 1000  # likewise, where as many are asked as can be answered
OWN, KUBE, LOOP, KEPT, ETCD_PEERS = 8010, 6443, 8011, 8012, 2380
LOOP_REQUESTS = 5000
COLD_REQUESTS, COLD_MB = 200, 16  # between two of them so much memory is written
EMPTY, SEE_AND_LIMIT = "an empty program", "see, and a limit"
OPEN = (("open", "--key", "user", "--in-flight", 100000),)
PATHS = {OWN: "/list/dev/pods", KUBE: "/api/v1/namespaces/default"}


class Own:
    """The server of tests/inside that authorizes as Kubernetes does."""

    name = "a small server"
    port = OWN
    quiet_port = NGINX  # of another server, to which nothing is sent
    where = ()

    def __init__(self, machine):
        with before_others(SERVER_CPU):
            self.pid = machine.start("inside", [program("apiserver"), "serve", f"127.0.0.1:{OWN}"], OWN)

    def command(self, requests, rate, *options):
        return program("client"), *options, "-header", "X-User=alice", "-n", requests, *load(rate), f"https://127.0.0.1:{OWN}{PATHS[OWN]}"

    @staticmethod
    def beside(*command):
        """A command that runs in its network namespace."""
        return command

    def ask(self, requests, rate=RATE):
        with before_others(CLIENT_CPU):
            run(*self.command(requests, rate))


class RealKube:
    """A kube-apiserver 1.20.2, where tests/inside/get has made one."""

    name = "kube-apiserver 1.20.2"
    port = KUBE
    quiet_port = ETCD_PEERS

    def __init__(self, machine):
        from kube import Kube
        self.kube = Kube(f"weir-bench-{os.getpid()}", machine.dir / "kube")
        machine.cleanup.callback(self.kube.end)
        with before_others(CLIENT_CPU):
            self.kube.start_etcd()
        with before_others(SERVER_CPU):
            self.kube.start_1_20()
        self.pid = self.kube.pid()
        self.where = "--netns", self.kube.namespace.path

    def command(self, requests, rate, *options):
        kube = self.kube
        return kube.namespace.command(kube.client_program, *options, *kube.pki.of("admin"), "-n", requests, *load(rate), kube.url(PATHS[KUBE]))

    def beside(self, *command):
        return self.kube.namespace.command(*command)

    def ask(self, requests, rate=RATE):
        with before_others(CLIENT_CPU):
            counts = self.kube.ask("admin", PATHS[KUBE], requests, *load(rate))
        assert counts["200"] == requests, counts


@contextlib.contextmanager
def kept_loaded(machine, server):
    """
    A server that nobody asks is looked into, in the same network namespace and by a binary of its own. While there is one, the programs stay
    loaded: to verify them again takes the kernel half a second, in which the caches are others'.
    """
    binary = machine.dir / "kept"
    shutil.copy(program("apiserver"), binary)
    command = server.beside(binary, "serve", f"127.0.0.1:{KEPT}")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=pinned(CLIENT_CPU)) as process:
        try:
            attach = "attach", "kept", "--port", KEPT, *server.where, "--inside", "see"
            eventually(lambda: machine.weir.run(*attach).returncode == 0, "the server that is kept is looked into")
            yield
            machine.weir("detach", "kept", "--force")
        finally:
            process.kill()


@contextlib.contextmanager
def beside_another(machine, port, *where):
    """The programs for packets stay loaded in a network namespace while another server of it is attached."""
    machine.weir("attach", "beside", "--port", port, *where, "--inside", "off")
    machine.stays = True
    try:
        yield
    finally:
        machine.stays = False
        machine.weir("detach", "beside", "--force")


class Loop:
    """It makes its requests itself, one after the other: what looks into it is most of what they take."""

    def __init__(self, machine):
        with before_others(SERVER_CPU):
            self.process = subprocess.Popen([program("loop"), f"127.0.0.1:{LOOP}"], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True)
        machine.cleanup.callback(end, self.process)
        eventually(lambda: answers(LOOP), "the loop listens")

    def handle(self, *words):
        """The nanoseconds of one request."""
        print(*words, file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())

    def request_ns(self):
        return self.handle("again", LOOP_REQUESTS)

    def cold_hit_ns(self, pid, name):
        """Of the program in this process, where the CPU's caches have been emptied before each hit."""
        with run_statistics():
            before = hits(pid, name)
            self.handle("cold", COLD_REQUESTS, COLD_MB)
            ns, times = (after - earlier for after, earlier in zip(hits(pid, name), before))
        return ns / times


def load(rate):
    return "-qps", rate, "-streams", STREAMS


def missing_kube():
    """Why there is no API server to be measured; None: there is one."""
    directory = os.environ.get("INSIDE_DIR")
    if not directory:
        return "INSIDE_DIR names no folder of tests/inside/get"
    if not (Path(directory) / "bin/kube-apiserver").exists():
        return "INSIDE_DIR has no kube-apiserver (tests/inside/get)"
    return None if shutil.which("etcd") else "there is no etcd (etcd-server)"


def programs_of(pid):
    """The BPF programs that a process has descriptors of. (What bpftool says of processes, not every kernel lets it find out.)"""
    texts = []
    for path in Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it has been closed meanwhile
            texts.append(path.read_text())
    return {int(line.split()[1]) for text in texts for line in text.splitlines() if line.startswith("prog_id:")}


def hits(pid, name):
    """
    (ns, times) of this process' programs on probes whose names begin so, since they were loaded. Those of the agent that follow processes,
    and its sweep, run in no request.
    """
    own = programs_of(pid)
    programs = [one for one in json.loads(run("bpftool", "-j", "prog", "show"))
                if one["type"] == "kprobe" and one.get("name", "").startswith(name) and one["id"] in own]
    return [sum(one.get(field, 0) for one in programs) for field in ("run_time_ns", "run_cnt")]


def attached(machine, server, inside):
    """No group is exempt: each user is asked for the limit."""
    return machine.attached("--port", server.port, *server.where, "--inside", inside, "--exempt-group", "",
                            limits=FAR[:1])


def cost_of_hits(server, rate, requests, hits_so_far):
    """(ns of the programs a hit, hits a request): of the part that took least"""
    server.ask(WARM_UP, rate)
    parts = []
    for _ in range(PARTS):
        before = hits_so_far()
        server.ask(requests, rate)
        ns, times = (after - earlier for after, earlier in zip(hits_so_far(), before))
        parts.append((ns / times, times / requests))
    return min(parts)


def costs_of_hits(server, hits_so_far):
    """At the rate, and where the server answers as many as it can."""
    with run_statistics():
        return (cost_of_hits(server, RATE, TURN_REQUESTS, hits_so_far),
                cost_of_hits(server, AS_MANY_AS_IT_CAN, BUSY_REQUESTS, hits_so_far))


def hits_seen(machine, server):
    with attached(machine, server, "see"):
        return costs_of_hits(server, lambda: hits(machine.weir.process.pid, "weir_inside"))


def hits_of_nothing(machine, server, *what):
    """Of an empty program, in the same place; or of one that does one thing only."""
    binary = os.readlink(f"/proc/{server.pid}/exe")
    with attached(machine, server, "off"), empty_program(binary, place_of(machine, binary), *what) as process:
        return costs_of_hits(server, lambda: hits(process.pid, ""))


class Hits(NamedTuple):
    """Of each turn, the ns of the programs a hit; of an empty program; and how many hits a request has."""

    programs: list
    empty: list
    often: list

    def least_ns(self):
        return min(self.programs) - min(self.empty)


def hits_of_turns(seen_turns, empty_turns):
    """One Hits for each of the rates."""
    return [Hits([ns for ns, _ in see], [ns for ns, _ in empty], [often for _, often in see])
            for see, empty in zip(zip(*seen_turns), zip(*empty_turns))]


def measure_hits(machine, server, pace):
    """In turns, what the programs take of a hit, and an empty one."""
    programs, empty = [], []
    for _ in range(pace.rounds):
        programs.append(hits_seen(machine, server))
        empty.append(hits_of_nothing(machine, server))
    return hits_of_turns(programs, empty)


def measure_cpu(machine, server, pace):
    """Microseconds of the server's CPU for a request, in pairs of turns: off, and when it is seen and decided."""
    with kept_loaded(machine, server), attached(machine, server, "off"):
        pairs = measure_pairs(machine, server, "bench", ROUND_S * pace.rounds)
    return [[pair[way] for pair in pairs] for way in WAYS]


def place_of(machine, binary):
    """The file's offset of the instruction where a request's authorization begins: `see` has its probe there."""
    found = machine.weir.json("probe", "--binary", binary)["found"]
    (authorization,) = [one for one in found if one["finding"] == "authorization"]
    return authorization["places"][0]["offset"]


@contextlib.contextmanager
def empty_program(binary, offset, *what):
    """One that does nothing, where weir's would be."""
    process = subprocess.Popen([BUILD / "empty_probe", binary, offset, *what], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True)
    try:
        assert process.stdout.readline() == "attached\n"
        yield process
    finally:
        process.communicate(timeout=10)


def measure_cold_loop(machine, loop, offset, rounds):
    """The least nanoseconds of a hit, in turns: of an empty program, and of seeing and deciding by a limit."""
    where, empty, see = ("--port", LOOP, "--inside"), [], []
    for _ in range(rounds):
        with machine.attached(*where, "off"), empty_program(program("loop"), offset) as process:
            empty.append(loop.cold_hit_ns(process.pid, ""))
        with machine.attached(*where, "see", limits=FAR[:1]):
            see.append(loop.cold_hit_ns(machine.weir.process.pid, "weir_inside"))
    return min(empty), min(see)


def measure_loop(machine, loop, offset, pace):
    """The least nanoseconds of one request, in turns: off; see; see and decide by a limit; also where requests end."""
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


def in_a_loop(machine, pace):
    loop = Loop(machine)
    offset = place_of(machine, program("loop"))
    with beside_another(machine, NGINX):
        least = measure_loop(machine, loop, offset, pace)
        cold_empty, cold = measure_cold_loop(machine, loop, offset, 2 * pace.rounds)
    return f"""## What it costs to be looked into

A server that makes such requests itself, one after the other, the trap counted in; the least of several rounds of {LOOP_REQUESTS:,}, in turns.
The empty program stands where weir's does: what it takes, each probe takes.

{table(["", *least], [["a request, ns", *map(number, least.values())]])}
Where {COLD_MB} MB are written before each request, so that the CPU's caches have nothing of it, the programs take {number(cold)} ns of a hit
with a limit, and the empty one {number(cold_empty)}.

The server's CPU time for one request, over TLS and HTTP/2, at {RATE:,} requests/s on one connection, {STREAMS} at a time: with
`inside: off`, and with `inside: see` and a limit of the user that everybody stays below. It is asked all the time, and what is applied
changes again and again. The last turn before a change is compared with the first one behind it; "more" is the median of these pairs, and behind it
is between what that is with 95 %, and how many pairs there are.
A hit's program is what the kernel says of the programs' time (least to most); the trap around it is in the CPU time only. What else runs while a program is preempted counts as the
program's time. So the least turn counts, less the least of an empty program in the same place. "Busy" is where the client asks as fast as it
is answered: at {RATE:,} requests/s the CPU rests between them, and finds its caches cold when it is woken.
""", {"inside, loop": least[SEE_AND_LIMIT] - least[EMPTY]}


def of_the_machine(machine, server):
    """What the CPU itself takes longer for where it has rested between two requests, and what not."""
    turns = {what: hits_of_nothing(machine, server, what) for what in ("compute", "jump", "read")}
    (compute, busy_compute), (jump, busy_jump), (read, busy_read) = [[ns for ns, _ in turn] for turn in turns.values()]
    return f"""
Programs that do one thing only, there: 2,000 multiplications take {number(compute)} ns at {RATE:,} requests/s and {number(busy_compute)} ns where it is
busy, 200 jumps that are taken {number(jump)} and {number(busy_jump)} ns, and one read of eight bytes of the request {number(read)} and
{number(busy_read)} ns. Where that is thousands, a kernel's first look at each page of a process takes so long on this machine, and weir's hits have
some of these in them.
"""


def in_a_server(machine, pace, server):
    """(the table of it, Hits at the rate, Hits where it answers as many as it can, more CPU in percent)"""
    with beside_another(machine, server.quiet_port, *server.where):
        server.ask(RATE)
        paced, busy = measure_hits(machine, server, pace)
        off, see = measure_cpu(machine, server, pace)
        alone = of_the_machine(machine, server)
    more, low, high = more_percent(see, off)
    share = 100 * median(paced.programs) / 1000 * median(paced.often) / median(off)
    row = [server.name, *(number(median(turns)) for turns in (off, see)),
           f"{number(more)} ({number(low)} to {number(high)}; {len(off)})", number(median(paced.often)), spread(paced.programs),
           number(min(paced.empty)), number(share), spread(busy.programs), number(min(busy.empty))]
    head = ["", "off, us", "see, us", "more, %", "hits a request", "a hit's program, ns", "an empty one, ns", "programs, % of off",
            "busy: a hit's program, ns", "busy: an empty one, ns"]
    return table(head, [row]) + alone, paced.least_ns(), busy.least_ns(), more


def report(machine, pace):
    yield in_a_loop(machine, pace)
    text, paced_ns, busy_ns, _ = in_a_server(machine, pace, Own(machine))
    yield text, {"inside, small": paced_ns, "inside, small, busy": busy_ns}
    why = missing_kube()
    if why:
        kube = "inside, kube", "inside, kube, busy", "inside, kube, CPU"
        yield f"A kube-apiserver was not measured: {why}.\n", dict.fromkeys(kube, why)
        return
    text, paced_ns, busy_ns, more = in_a_server(machine, pace, RealKube(machine))
    yield text, {"inside, kube": paced_ns, "inside, kube, busy": busy_ns, "inside, kube, CPU": more}
