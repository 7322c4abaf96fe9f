# SPDX-License-Identifier: GPL-2.0
"""
How much more CPU a server takes for a request where it is looked into.

It is asked all the time, on the same connections. What its server is set to changes between one turn and the next, and nothing else does.
A turn is many short windows, and counts as their median: one in which the server collects garbage, or another process has emptied the
caches, is one of many. Turns are compared in pairs, one right after the other, of which chance says which is first. Every request of a
turn was seen, or none was.
"""
import contextlib
import functools
import json
import random
import re
import subprocess
import time
from statistics import median

from machine import CLIENT_CPU, pinned

RATE = 1000
STREAMS = 16  # requests at a time
PAIRS = 12  # for each round of the pace
WARM_UP_S, SETTLE_S = 2, 0.1
WINDOW_S, WINDOWS = 0.05, 16  # of a turn
ENOUGH = 100000000  # requests
WAYS = "off", "see"


class Client:
    """It asks all the time, at the rate."""

    def __init__(self, server):
        command = [str(word) for word in server.command(ENOUGH, RATE, "-tell")]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=pinned(CLIENT_CPU))

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


class Seen:
    """Of the requests of a turn, how many were seen: all, or none, but for those that are on their way when it begins or ends."""

    def __init__(self, machine, name, client):
        self.server, self.client = functools.partial(machine.weir.server, name), client

    def count(self):
        return self.server()["seen_inside"].get("seen", 0)

    @contextlib.contextmanager
    def checked(self, way):
        """What is answered is counted within the time in which what is seen is."""
        seen_before, answered_before = self.count(), self.client.answers()
        yield
        answered, seen = self.client.answers() - answered_before, self.count() - seen_before
        assert answered > STREAMS, "the client asks nothing"
        assert seen == 0 if way == "off" else seen >= answered - STREAMS, f"{way}: {seen} of {answered} requests were seen"


def measure_pairs(machine, server, name, n):
    """{way: the cost of each turn}"""
    ways, chance = Ways(machine, name), random.Random(1)
    costs = {way: [] for way in WAYS}
    with asked(server) as client:
        seen = Seen(machine, name, client)
        for _ in range(n):
            for way in chance.sample(WAYS, len(WAYS)):
                ways.take(way)
                with seen.checked(way):
                    costs[way].append(turn(server.pid))
    return costs
