# SPDX-License-Identifier: GPL-2.0
"""What a refused request costs: weir, nginx limit_req and an HAProxy stick table, side by side."""
from figures import median, ratios, spread, table
from machine import HAPROXY_LIMITED, LOOPBACK, NGINX, NGINX_LIMITED, SERVER_CPU, SERVER_HOST

WEIR, LIMIT_REQ, STICK_TABLE = "weir", "nginx `limit_req`", "HAProxy stick table"
RATE = 20000
ALL = 100000  # requests that figures are given for
LIMIT = (("user", "--qps", 1, "--burst", 1),)


def peers(machine):
    found = {WEIR: NGINX, LIMIT_REQ: NGINX_LIMITED, STICK_TABLE: HAPROXY_LIMITED}
    return {name: port for name, port in found.items() if port in machine.pids}


def load(machine, name, port, **options):
    """All but the one request a second that passes everywhere must have been refused."""
    def run():
        return machine.load(port, **options)
    if name == WEIR:
        with machine.attached("--port", NGINX, limits=LIMIT):
            result = run()
    else:
        result = run()
    if result["other"] or result["shed"] < 100 * result["passed"]:
        raise RuntimeError(f"{name}: not everything was refused: {result}")
    return result


def measure(machine, number_of_rounds, **options):
    """[{peer: result}], each round in another order."""
    ports = peers(machine)
    names = list(ports)
    rounds = []
    for i in range(number_of_rounds):
        order = names[i % len(names):] + names[:i % len(names)]
        rounds.append({name: load(machine, name, ports[name], **options) for name in order})
    return rounds


def column(rounds, name, figure):
    return [figure(row[name]) for row in rounds]


def to_limit_req(rounds, figure):
    """The ratios of weir's figure to limit_req's."""
    return ratios(column(rounds, WEIR, figure), column(rounds, LIMIT_REQ, figure))


def shed_per_second(result):
    return result["shed"] / result["seconds"]


def machine_s(result):
    return result["machine_cpu_s"] / result["shed"] * ALL


def others_s(result):
    return (result["machine_cpu_s"] - result["own_cpu_s"]) / result["shed"] * ALL


def server_s(result):
    return result["server_cpu_s"] / result["shed"] * ALL


def host_s(result):
    return result["cpus_s"][SERVER_CPU] / result["shed"] * ALL


def rows(rounds, *figures):
    return [[name, *(spread(column(rounds, name, figure)) for figure in figures)] for name in rounds[0]]


def ratio_row(rounds, *figures):
    return ["weir / `limit_req`", *(spread(to_limit_req(rounds, figure)) for figure in figures)]


def shed_p50(result):
    return result["shed_p50_us"]


def shed_p99(result):
    return result["shed_p99_us"]


def report(machine, pace):
    loopback = measure(machine, pace.rounds, rate=RATE, seconds=pace.long, host=LOOPBACK)
    veth = measure(machine, pace.rounds, rate=RATE, seconds=pace.long, host=SERVER_HOST)
    closed = measure(machine, pace.rounds, connections=64, seconds=pace.seconds)
    single = measure(machine, pace.rounds, connections=1, seconds=pace.seconds)
    of_loopback = shed_per_second, machine_s, others_s, server_s
    of_veth = shed_per_second, host_s, server_s
    text = f"""## Requests that are refused

{RATE:,} requests/s on 16 connections, of which one a second passes. CPU seconds for {ALL:,} refused requests: median
(least to most) of {pace.rounds} rounds, and the ratios of rounds.

On loopback. The kernel here books what a packet costs its receiver to whoever sent it (unless it was built with
CONFIG_IRQ_TIME_ACCOUNTING), so that much of weir's work counts as the generator's: "less the generator" flatters it,
and "whole machine" includes what a client costs.

{table(["", "429s/s", "whole machine, CPU s", "less the generator, CPU s", "server's process, CPU s"],
       [*rows(loopback, *of_loopback), ratio_row(loopback, *of_loopback)])}
Over a veth pair, each end's packets worked on by a CPU of its own (RPS), so that the server's CPU does what a host of
one CPU would do for clients elsewhere: all of it, interrupts and weir included.

{table(["", "429s/s", "server's host, CPU s", "server's process, CPU s"],
       [*rows(veth, *of_veth), ratio_row(veth, *of_veth)])}
Closed loop on loopback: 64 connections for the rate, one for the times.

{table(["", "429s/s", "one connection: p50, us", "p99, us"],
       [[name, spread(column(closed, name, shed_per_second)), spread(column(single, name, shed_p50)),
         spread(column(single, name, shed_p99))] for name in closed[0]]
       + [["weir / `limit_req`", spread(to_limit_req(closed, shed_per_second)), spread(to_limit_req(single, shed_p50)),
           spread(to_limit_req(single, shed_p99))]])}
"""
    yield text, {"shedding, loopback": median(to_limit_req(loopback, others_s)),
                 "shedding, host": median(to_limit_req(veth, host_s)),
                 "shedding, server": median(to_limit_req(veth, server_s)),
                 "shedding, rate": median(to_limit_req(closed, shed_per_second)),
                 "shedding, p50": median(to_limit_req(single, shed_p50))}
