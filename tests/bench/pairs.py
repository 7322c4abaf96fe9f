# SPDX-License-Identifier: GPL-2.0
"""
How much more CPU a server takes for a request where it is looked into.

It is asked all the time, on the same connections. What its server is set to changes between one turn and the next, and nothing else does.
A turn is many short windows, and counts as their median: one in which the server collects garbage, or another process has emptied the
caches, is one of many. Turns are compared in pairs, one right after the other, of which chance says which is first.
"""
import contextlib
import random
import re
import subprocess
import time
from statistics import median

from machine import CLIENT_CPU, pinned

RATE = 1000
PAIRS = 12  # for each round of the pace
WARM_UP_S, SETTLE_S = 2, 0.1
WINDOW_S, WINDOWS = 0.05, 16  # of a turn
ENOUGH = 100000000  # requests
WAYS = "off", "see"


@contextlib.contextmanager
def asked(server):
    """All the time, at the rate."""
    command = [str(word) for word in server.command(ENOUGH, RATE)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=pinned(CLIENT_CPU)) as client:
        try:
            time.sleep(WARM_UP_S)
            yield
            assert client.poll() is None, "the client has ended"
        finally:
            client.kill()


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


def measure_pairs(machine, server, name, n):
    """{way: the cost of each turn}"""
    ways, chance = Ways(machine, name), random.Random(1)
    costs = {way: [] for way in WAYS}
    with asked(server):
        for _ in range(n):
            for way in chance.sample(WAYS, len(WAYS)):
                ways.take(way)
                costs[way].append(turn(server.pid))
    seen = machine.weir.server(name)["seen_inside"]["seen"]
    assert seen >= n * WINDOWS * WINDOW_S * RATE / 2, f"{seen} requests were seen"
    return costs
