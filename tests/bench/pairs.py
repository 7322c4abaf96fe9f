# SPDX-License-Identifier: GPL-2.0
"""
How much more CPU a server takes for a request where it is looked into.

It is asked all the time, on the same connections. What its server is set to is changed again and again, and nothing else is. What a request
takes differs from one second to the next by far more than what is looked for: garbage is collected, others have the caches, the host has other
guests. So turns are short, and compared is the last one before a change with the first one behind it: a pair for each change, in which the
server is looked into behind it as often as before it. A turn is many short windows, and counts as their median. Every request of the turns
between two changes was seen, or none was.

The server's clock has what the probes take: the trap and the programs run in its own threads.
"""
import contextlib
import functools
import itertools
import json
import re
import subprocess
import time
from statistics import median
from typing import NamedTuple

from machine import CLIENT_CPU, before_others

RATE = 1000
STREAMS = 16  # requests at a time
ROUND_S = 30  # of each round of the pace
WARM_UP_S, SETTLE_S = 2, 0.1
WINDOW_S, WINDOWS = 0.02, 15  # of a turn
TURNS = 2  # between two changes
ENOUGH = 100000000  # requests
WAYS = "off", "see"


class Client:
    """It asks all the time, at the rate."""

    def __init__(self, server):
        command = [str(word) for word in server.command(ENOUGH, RATE, "-tell")]
        with before_others(CLIENT_CPU):
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def answers(self):
        """How many it has got, of which all are good."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        counts = json.loads(self.process.stdout.readline())
        assert counts.keys() <= {"200", "connections"}, counts
        return counts.get("200", 0)


@contextlib.contextmanager
def asked(server):
    client = Client(server)
    with client.process:
        try:
            time.sleep(WARM_UP_S)
            yield client
        finally:
            client.process.kill()


def cpu_s(pid):
    """Of the process: its clock's number is made of its id (clock_getcpuclockid)."""
    return time.clock_gettime((~pid << 3) | 2)


def turn(pid):
    """Microseconds of the process' CPU for a request."""
    marks = [(time.monotonic(), cpu_s(pid))]
    for _ in range(WINDOWS):
        time.sleep(WINDOW_S)
        marks.append((time.monotonic(), cpu_s(pid)))
    return median((cpu - cpu_before) / (now - before) * 1e6 / RATE
                  for (before, cpu_before), (now, cpu) in zip(marks, marks[1:]))


class Ways:
    """A server that is attached is looked into, or not: its Throttle is applied with another `inside`."""

    def __init__(self, machine, name):
        self.weir = machine.weir
        self.path = machine.dir / f"{name}.yaml"
        texts = self.weir("export").split("---\n")
        (self.text,) = [text for text in texts if f"\n  name: {name}\n" in text]

    def take(self, way):
        text, n = re.subn(r"^  inside: .*$", f'  inside: "{way}"', self.text, flags=re.MULTILINE)
        assert n == 1, self.text
        self.path.write_text(text)
        self.weir("apply", "-f", self.path)
        time.sleep(SETTLE_S)


class Stay(NamedTuple):
    """A server is set to one way, between two changes."""

    way: str
    costs: list  # of its turns
    kept_up: bool  # with what it was asked; beside others it may not come to that

    def pair(self, later):
        """{way: cost} right before a change, and right behind it"""
        return {self.way: self.costs[-1], later.way: later.costs[0]}


class Looker:
    """Takes turns of a server that is asked, and looks how many of their requests were seen."""

    def __init__(self, machine, server, name, client):
        self.pid, self.client = server.pid, client
        self.server = functools.partial(machine.weir.server, name)

    def seen(self):
        return self.server()["seen_inside"].get("seen", 0)

    def stay(self, way):
        """
        All requests were seen, or none was, but for those that are on their way when it begins or ends. What is answered is counted within
        the time in which what is seen is.
        """
        seen_before, answered_before = self.seen(), self.client.answers()
        costs = [turn(self.pid) for _ in range(TURNS)]
        answered, seen = self.client.answers() - answered_before, self.seen() - seen_before
        assert seen == 0 if way == "off" else seen >= answered - STREAMS, f"{way}: {seen} of {answered} requests were seen"
        return Stay(way, costs, answered > RATE * TURNS * WINDOWS * WINDOW_S / 2)


def pairs_of(stays):
    return [one.pair(later) for one, later in itertools.pairwise(stays) if one.kept_up and later.kept_up]


def measure_pairs(machine, server, name, seconds):
    """[{way: the cost of a turn}], as many as come in this time"""
    ways, stays = Ways(machine, name), []
    with asked(server) as client:
        looker, until = Looker(machine, server, name, client), time.monotonic() + seconds
        for way in itertools.cycle(WAYS):
            ways.take(way)
            stays.append(looker.stay(way))
            if time.monotonic() > until:
                break
    pairs = pairs_of(stays)
    assert pairs, "the server did not come to answer what it was asked"
    return pairs
