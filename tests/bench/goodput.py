# SPDX-License-Identifier: GPL-2.0
"""What is left for a well-behaved user while another one floods the server."""
from figures import number, table
from machine import FAR, GO, HAPROXY_USERS

RATE = 500  # of the well-behaved one
ALLOWED = 1000  # for the noisy one, a second
LIMITS = (*FAR, ("user", "noisy", "--qps", ALLOWED, "--burst", ALLOWED))
PATH = "/work"


def good_and_noisy(machine, port, rate, seconds):
    """The results of both; the noisy one's is None when there is none."""
    flood = None
    if rate:
        flood = machine.begin_load(port, PATH, seconds=seconds + 0.5, warm_up=0.5, connections=64, rate=rate,
                                   user="noisy")
    try:
        good = machine.load(port, PATH, first=True, seconds=seconds, warm_up=0.7, rate=RATE, user="good")
    finally:
        noisy = machine.finish_load(flood) if flood else None
    return good, noisy


def measure(machine, way, rate, seconds):
    if way == "HAProxy in front":
        return good_and_noisy(machine, HAPROXY_USERS, rate, seconds)
    if way == "nothing":
        return good_and_noisy(machine, GO, rate, seconds)
    with machine.attached("--port", GO, "--trusted-proxy", "127.0.0.0/8", limits=LIMITS):
        return good_and_noisy(machine, GO, rate, seconds)


def row(rate, results):
    cells = [f"{rate:,}"]
    for good, noisy in results:
        cells += [number(good["passed"] / good["seconds"]), number(good["passed_p99_us"] / 1000),
                  number(noisy["passed"] / noisy["seconds"]) if noisy else "-"]
    return cells


def report(machine, pace):
    machine.must_serve(GO)
    ways = ["nothing", "weir"] + (["HAProxy in front"] if HAPROXY_USERS in machine.pids else [])
    capacity = machine.load(GO, PATH, seconds=pace.seconds, connections=16)
    capacity_rate = capacity["passed"] / capacity["seconds"]
    results = {rate: [measure(machine, way, rate, pace.long) for way in ways] for rate in pace.floods}
    columns = "good, 200s/s", "p99, ms", "noisy, 200s/s"
    head = ["flood, requests/s"] + [f"{way}: {column}" for way in ways for column in columns]
    text = f"""## Goodput under a flood

A Go server that can do {number(capacity_rate)} requests/s of this kind (JSON of a list, 16 connections). A well-behaved
user asks for {RATE:,} a second on 16 connections; a noisy one floods it on 64. With weir and HAProxy the noisy one is
limited to {ALLOWED:,} a second (HAProxy counts what it refuses, too: a flood is refused whole). A request counts from
when it was due, and what is never answered with its age.

{table(head, [row(rate, results[rate]) for rate in pace.floods])}
"""
    yield text, {}
