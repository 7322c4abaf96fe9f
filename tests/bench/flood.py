# SPDX-License-Identifier: GPL-2.0
"""What is left for a neighbour's connections while SYNs come from a million addresses."""
import contextlib
import json
import os
import subprocess
import time
from statistics import median

from figures import number, table
from lib.process import run
from machine import BUILD, CLIENT_CPU, CLIENT_HOST, NGINX, SERVER_CPU, SERVER_HOST, pinned

RATE = 200  # connections of the neighbour, a second
SOURCES = "172.16.0.0/12"
LIMITS = [("conns", "--key", "source", "--connections", "--qps", 1000, "--burst", 2000),
          ("open", "--key", "source", "--open", 1000)]
DENIED = ("flood", "--key", "total", "--connections", "--deny", "--source", SOURCES)
QUIET = "no flood"
COOKIES = "--xdp", "generic", "--syn-cookies", "xdp"
WAYS = {  # what attach is told, and limits
    "SYN cookies alone": None,
    "weir at tc": (("--xdp", "off"), LIMITS),
    "weir, XDP generic": (("--xdp", "generic"), LIMITS),
    "weir, the flood's network denied at XDP generic": (("--xdp", "generic"), [*LIMITS, DENIED]),
    "weir, SYN cookies from XDP generic": (COOKIES, LIMITS),
    "weir, SYN cookies from XDP generic, no limits": (COOKIES, []),
}


@contextlib.contextmanager
def answered_there():
    """What the server answers to the flood goes out by the veth, and its neighbour's host takes no notice."""
    run("ip", "route", "add", SOURCES, "via", CLIENT_HOST)
    try:
        yield
    finally:
        run("ip", "route", "del", SOURCES)


def way_of(machine, way):
    if not WAYS[way]:
        return contextlib.nullcontext()
    words, limits = WAYS[way]
    return machine.attached("--port", NGINX, *words, limits=limits)


def busy_s(cpu):
    with open("/proc/stat") as stat:
        (fields,) = [line.split() for line in stat if line.startswith(f"cpu{cpu} ")]
    return sum(int(field) for i, field in enumerate(fields[1:9]) if i not in (3, 4)) / os.sysconf("SC_CLK_TCK")


def begin(machine, first, program, *words):
    return subprocess.Popen([*machine.client_host, str(BUILD / program), *(str(word) for word in words)], text=True,
                            stdout=subprocess.PIPE, preexec_fn=pinned(CLIENT_CPU, first))


def finish(process):
    text, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"failed: {' '.join(process.args)}")
    return json.loads(text)


def measure(machine, rate, seconds):
    """The neighbour's connections; with the SYNs sent, and the share of the server's CPU that was busy."""
    (link,) = json.loads(run("ip", "-j", "link", "show", "bench0"))
    flood = begin(machine, False, "syns", "bench1", link["address"], SERVER_HOST, NGINX, rate, seconds + 0.5) if rate else None
    busy, start = busy_s(SERVER_CPU), time.monotonic()
    result = finish(begin(machine, True, "connects", SERVER_HOST, NGINX, RATE, seconds))
    result["busy"] = (busy_s(SERVER_CPU) - busy) / (time.monotonic() - start)
    result["syns"] = finish(flood)["sent"] / (seconds + 0.5) if flood else 0
    return result


def row(way, rate, results, quiet):
    due = sum(result["connected"] + result["failed"] for result in results)
    p99 = median(result["p99_us"] for result in results)
    return [f"{way}, {rate:,}" if rate else f"{way}, {QUIET}", number(median(result["syns"] for result in results)),
            f"{sum(result['connected'] for result in results):,} of {due:,}",
            number(median(result["p50_us"] for result in results) / 1000), number(p99 / 1000), number(p99 / quiet),
            f"{median(result['busy'] for result in results):.0%}"]


def report(machine, pace):
    points = [(way, rate) for way in WAYS for rate in (0, *pace.syns)]
    results = {point: [] for point in points}
    with answered_there():
        for turn in range(pace.few_rounds):
            for way in WAYS if turn % 2 == 0 else reversed(WAYS):
                with way_of(machine, way):
                    for rate in (0, *pace.syns):
                        results[way, rate].append(measure(machine, rate, pace.long))
    quiet = median(result["p99_us"] for result in results["SYN cookies alone", 0])
    head = ["way, SYNs/s asked for", "sent", "neighbour's connections", "p50, ms", "p99, ms", "p99 to quiet", "server's CPU busy"]
    worst = max(result["failed"] for point in points if WAYS[point[0]] for result in results[point])
    text = f"""## A flood of SYNs

Over a veth: {RATE:,} connections a second to nginx from one neighbour, each closed as soon as it stands, while SYNs with random
sources of {SOURCES} come, a million addresses that never answer. Medians of {pace.few_rounds} rounds, in turns. `net.ipv4.tcp_syncookies`
is 1. weir has limits on new and open connections of each address. The flood and the neighbour share CPU 1, where the neighbour
goes first. The server's CPU has the kernel's work on all that comes.

{table(head, [row(way, rate, results[way, rate], quiet) for way, rate in points])}
"""
    yield text, {"flood": worst}
