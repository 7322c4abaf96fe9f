# SPDX-License-Identifier: GPL-2.0
"""What weir costs requests that pass: attached, with limits far away, against detached."""
from typing import NamedTuple

from figures import median, number, ratios, spread, table
from machine import GO, HAPROXY, NGINX, run_statistics


class Workload(NamedTuple):
    name: str
    port: int
    path: str
    rate: int  # well below what the server can do
    connections: int = 16
    method: str = "GET"
    body: int = 0


WORKLOADS = (
    Workload("nginx, `return 200`", NGINX, "/", 20000),
    Workload("nginx, file of 1 KiB", NGINX, "/files/small", 10000),
    Workload("nginx, download of 1 MiB", NGINX, "/files/large", 300, connections=4),
    Workload("nginx, upload of 1 MiB (PUT to a tmpfs)", NGINX, "/uploads/file", 200, connections=4, method="PUT",
             body=1 << 20),
    Workload("Go net/http, 3 bytes", GO, "/", 8000),
)
FIRST = WORKLOADS[0]
THROUGH_HAPROXY = Workload("nginx, `return 200`, HAProxy in front", HAPROXY, "/", 20000)
PORTS = f"{NGINX},{GO}"


CLOSED = "closed loop", "detached, requests/s", "attached, requests/s", "ratio", "detached, us", "attached, us"
FIXED = "fixed rate", "requests/s", "detached, CPU us", "attached, CPU us", "difference", "detached, us", "attached, us"
PROGRAMS = "", "ingress, ns", "runs", "egress, ns", "runs"


def load(machine, workload, seconds, rate=0, **options):
    result = machine.load(workload.port, workload.path, seconds=seconds, rate=rate, connections=workload.connections,
                          method=workload.method, body=workload.body, **options)
    if result["shed"] or result["other"] or not result["passed"]:
        raise RuntimeError(f"{workload.name}: not everything was served: {result}")
    return result


def measure(machine, workload, seconds, number_of_rounds, rate=0):
    """[{"detached": result, "attached": result}]; every other round begins with the other one."""
    rounds = []
    for i in range(number_of_rounds):
        row = {}
        for state in ("detached", "attached") if i % 2 else ("attached", "detached"):
            if state == "detached":
                row[state] = load(machine, workload, seconds, rate)
                continue
            with machine.attached("--port", PORTS, "--interface", "lo"):
                row[state] = load(machine, workload, seconds, rate)
        rounds.append(row)
    return rounds


def values(rounds, state, field):
    return [row[state][field] for row in rounds]


def per_second(rounds, state):
    return [row[state]["passed"] / row[state]["seconds"] for row in rounds]


def cpu_us(rounds, state):
    return [row[state]["machine_cpu_s"] / row[state]["passed"] * 1e6 for row in rounds]


def times(rounds, state):
    """p50/p99 in us."""
    return "/".join(number(median(values(rounds, state, f"passed_{p}_us"))) for p in ("p50", "p99"))


def relative(rounds):
    return ratios(per_second(rounds, "attached"), per_second(rounds, "detached"))


def closed_row(workload, rounds):
    rates = [number(median(per_second(rounds, state))) for state in ("detached", "attached")]
    return [workload.name, *rates, spread(relative(rounds)), times(rounds, "detached"), times(rounds, "attached")]


def fixed_row(workload, rounds):
    detached, attached = (cpu_us(rounds, state) for state in ("detached", "attached"))
    more = [one - other for one, other in zip(attached, detached)]
    return [workload.name, f"{workload.rate:,}", number(median(detached)), number(median(attached)), spread(more),
            times(rounds, "detached"), times(rounds, "attached")]


def haproxy_rounds(machine, seconds, number_of_rounds):
    """HAProxy against nothing in front: what a user would pick instead of weir."""
    return [{"detached": load(machine, FIRST, seconds), "attached": load(machine, THROUGH_HAPROXY, seconds)}
            for _ in range(number_of_rounds)]


def program_rows(machine, seconds):
    rows = []
    for workload in available(machine):
        with machine.attached("--port", PORTS, "--interface", "lo"), run_statistics() as enabled:
            if not enabled:
                raise OSError("the kernel measures no programs")
            result = load(machine, workload, seconds, workload.rate, warm_up=0)
            taken = machine.run_times()
        row = [workload.name]
        for ns, count in taken["ingress"], taken["egress"]:
            row += [number(ns / result["sent"]), number(count / result["sent"])]
        rows.append(row)
    return rows


def available(machine):
    return [workload for workload in WORKLOADS if workload.port in machine.pids]


def missing_text(machine):
    return "".join(f"**Not measured**: {workload.name}: {machine.missing[workload.port]}\n\n"
                   for workload in (*WORKLOADS, THROUGH_HAPROXY) if workload.port in machine.missing)


def closed_loops(machine, pace):
    rows, values = [], {}
    for workload in available(machine):
        rounds = measure(machine, workload, pace.seconds, pace.rounds)
        rows.append(closed_row(workload, rounds))
        if workload is FIRST:
            values["passing"] = values["passing, wanted"] = median(relative(rounds))
    if HAPROXY in machine.pids:
        rounds = haproxy_rounds(machine, pace.seconds, pace.few_rounds)
        rows.append(closed_row(THROUGH_HAPROXY, rounds))
        values["passing, HAProxy"] = median(relative(rounds))
    else:
        values["passing, HAProxy"] = machine.missing[HAPROXY]
    return f"""## Requests that pass

Limits for each user and for the server, both far away. Closed loop: as many requests as {FIRST.connections}
connections (4 for the large ones) can have answered. Times are p50/p99 in us; the ratio is attached to detached (for
HAProxy: through it to without it), of rounds measured one after the other: median (least to most).

{table(CLOSED, rows)}
{missing_text(machine)}""", values


def fixed_rates(machine, pace):
    rows, values = [], {}
    for workload in available(machine):
        rounds = measure(machine, workload, pace.seconds, pace.few_rounds, workload.rate)
        rows.append(fixed_row(workload, rounds))
        if workload is FIRST:
            values["passing, CPU"] = 100 * (median(ratios(cpu_us(rounds, "attached"), cpu_us(rounds, "detached"))) - 1)
    return f"""At a fixed rate below what the server can do: CPU time of the whole machine, generator included, for one request.

{table(FIXED, rows)}""", values


def report(machine, pace):
    yield closed_loops(machine, pace)
    yield fixed_rates(machine, pace)
    yield f"""The programs' own time for one request, by the kernel's statistics (which cost some themselves), at
these rates. On loopback every packet passes both programs, one of which has nothing to do with it.

{table(PROGRAMS, program_rows(machine, pace.seconds))}""", {}
