# SPDX-License-Identifier: GPL-2.0
"""What one packet, one connection and one key cost."""
import json
import time

from figures import number, table
from lib.process import run
from machine import BUILD, NGINX, SERVER_CPU, pinned

CONNECTIONS = 2000
REQUESTS_KEYS = (10, 1000000)
READ_AT_SOCKET = "1 KiB that was read on its way, at the socket"


def decisions(times):
    text = [run(BUILD / program, times, preexec_fn=pinned(SERVER_CPU)) for program in ("decision", "xdp")]
    return [json.loads(line) for line in "".join(text).splitlines()]


def among(times):
    """Acknowledgements of one of so many connections, few to many."""
    return [json.loads(line) for line in run(BUILD / "among", BUILD / "counted/weir.bpf.o", max(200, times // 1000)).splitlines()]


def among_row(line):
    return [f"{line['among']:,}", line["ns"] - line["empty_ns"], line["look_up_ns"] - line["empty_ns"], line["look_ups"]]


def above(line, live=""):
    """What a program takes above one that does nothing, and that one."""
    return f"{line[f'{live}ns'] - line[f'{live}empty_ns']:,} ({line[f'{live}empty_ns']:,})"


def at_once(times):
    """(rows of packets, rows of requests, more ns for a packet), each one CPU and two. They have a CPU each: it is not pinned."""
    lines = [json.loads(line) for line in run(BUILD / "at_once", max(200, times // 1000)).splitlines()]
    values = {(line.get("packet", line.get("limits")), line["at_once"]): line["ns"] for line in lines}
    ns = {key: number(value) for key, value in values.items()}
    ways = list(dict.fromkeys(line["at_once"] for line in lines))
    packets = dict.fromkeys(line["packet"] for line in lines if "packet" in line)
    more = max(values[packet, ways[1]] - values[packet, ways[0]] for packet in packets)
    return ([[packet, *(ns[packet, way] for way in ways[:2])] for packet in packets],
            [[way, *(ns[limits, way] for limits in (0, 1, 2))] for way in ways], more)


def at_xdp(lines):
    """A row for each frame."""
    return [[line["frame"], above(line), above(line, "live_")] for line in lines if "frame" in line]


def map_bytes(machine):
    """{map: bytes} of what is pinned."""
    (directory,) = machine.weir.pins.glob("net-*")
    found = {}
    for path in directory.iterdir():
        if not path.name.startswith(("prog-", "link-")):
            found[path.name] = json.loads(run("bpftool", "-j", "map", "show", "pinned", path))["bytes_memlock"]
    return found


def connection_bytes(machine):
    """(all maps without connections, what one connection adds)."""
    with machine.attached("--port", NGINX):
        before = map_bytes(machine)
        load = machine.begin_load(NGINX, seconds=1.5, connections=CONNECTIONS, rate=CONNECTIONS)
        time.sleep(1)
        during = map_bytes(machine)
        machine.finish_load(load)
    return sum(before.values()), (during["conns"] - before["conns"]) / CONNECTIONS


def reading_row(line):
    return [line["reading"], line["ns"] - line["empty_ns"], line["ns"] - line["unread_ns"]]


def exchanges(lines, at_socket):
    """({limits: ns of a request with its answer, in all programs}, a row for each number of limits): above an empty program."""
    ns = {(line["exchange"], line["limits"]): line["ns"] for line in lines if "exchange" in line}
    empty = ns.pop(("nothing", 0))
    counts = sorted({limits for _, limits in ns})
    parts = {n: (ns["the request", n] - empty, at_socket, ns["its answer", n] - empty) for n in counts}
    return {n: sum(parts[n]) for n in counts}, [[n, *parts[n], f"{sum(parts[n]):,}"] for n in counts]


def limit_ns(requests, keys):
    """What each of two limits adds to a request, one of them for each of so many users."""
    return (requests[keys, 2]["ns"] - requests[keys, 0]["ns"]) / 2


def packets(lines, pace):
    bare = {line["packet"]: line["ns"] - line["empty_ns"] for line in lines if "packet" in line and "empty_ns" in line}
    at_hold = {packet: ns for packet, ns in bare.items() if packet.endswith("at the socket")}
    on_way = {packet: ns for packet, ns in bare.items() if packet not in at_hold}
    exchange, exchange_rows = exchanges(lines, bare[READ_AT_SOCKET])
    reading = [reading_row(line) for line in lines if "reading" in line]
    others = [row for row in reading if row[0] in ("the request, if each is another one", "its answer, if each is another one")]
    both = [row for row in reading if row[0] in ("the request", "its answer")]
    few, *_, many = crowds = among(pace.test_runs)
    text = f"""## What one packet costs

By BPF_PROG_TEST_RUN, above a program that does nothing (which takes what stands in brackets), the least of rounds of a thousand
runs, in turns. In each run an acknowledgement is of more bytes, and a part of a body is the next one. At the socket, and where nobody
has checked its checksum, a packet is the same each time.

{table(["packet", "ns"], [[line["packet"], above(line) if "empty_ns" in line else number(line["ns"])] for line in lines if "packet" in line])}
A pure acknowledgement from one of so many clients by chance, each with a connection, above a program that does nothing; the same of a program
that looks the connection up and does no more; and how often weir looks for connections.

{table(["connections", "ns", "one look-up, ns", "look-ups"], [among_row(line) for line in crowds])}
A small request of one packet and nginx's answer to it, each on a connection that is set back before each run, above a program that does
nothing and is run like that: the least of many, ns. At the socket, a request costs what any packet does that was read on its way.

{table(["limits", "request at ingress", "at the socket", "answer at egress", "all"], exchange_rows)}
The heads of the two read by the same functions, and nothing else, in the same way; and above a program that finds the memory and the
connection, as weir's programs have by then, and reads nothing. A head that comes again is in [the cache](architecture.md#heads-that-come-again).

{table(["head", "ns", "above finding, ns"], reading)}"""
    return text, {
        "exchange": exchange[2], "reading": sum(ns for _, ns, _ in both), "reading, found": sum(ns for _, _, ns in both),
        "reading, others": sum(ns for _, ns, _ in others),
        "foreign": max(ns for packet, ns in on_way.items() if packet == "UDP" or "another port" in packet),
        "acknowledgement": max(ns for packet, ns in on_way.items() if packet.startswith("pure ACK")),
        "acknowledgement, many": many["ns"] - many["look_up_ns"], "look-ups": max(few["look_ups"], many["look_ups"]),
        "hold": max(at_hold.values()), "body": max(ns for packet, ns in on_way.items() if packet.startswith("1 KiB"))}


def at_xdp_text(lines):
    return f"""At XDP, above a program that does nothing and says the same (which takes what stands in brackets), the least of five runs in turns;
live frames are freed, or go up the stack, as those of a driver.

{table(["frame", "ns", "live, ns"], at_xdp(lines))}
A SYN of a flood, live: answered by a cookie, and the answer sent to the other end of a veth. The least of many batches.

{table(["answered by", "ns"], [[line["answer"], f"{line['live_ns']:,}"] for line in lines if "answer" in line])}"""


def requests(lines):
    heads = [[line["head"], line["bytes"], number(line["ns"])] for line in lines if "head" in line]
    found = {(line["keys"], line["limits"]): line for line in lines if "keys" in line}
    keys = sorted({keys for keys, _ in found})
    decided = [[f"{k:,}", *(number(found[k, limits]["ns"]) for limits in (0, 1, 2)), number(found[k, 1]["bytes"] / k)] for k in keys]
    matched = {(line["users"], line["rules"]): line for line in lines if "rules" in line}
    rules = sorted({rules for _, rules in matched})
    matching = [[f"{k:,}", *(number(matched[k, n]["ns"]) for n in rules)] for k in keys]
    limit_few, limit_many = (limit_ns(found, k) for k in REQUESTS_KEYS)
    text = f"""Reading heads, as many in a packet as 3,000 bytes hold: the median over packets, for one.

{table(["head", "bytes", "ns"], heads)}
Requests of 56 bytes, 48 in a packet, each of a random user among those with a bucket: the median over packets, ns for
one request. Reading it, without limits; with a limit for each user; with one for the server, too.

{table(["users", "read", "one limit", "two limits", "bucket map, bytes a user"], decided)}
The same with one limit for each user that has rules, of which the last matches; each has conditions on user, verb,
namespace, path and address.

{table(["users", *(f"{n:,} rule{'s' * (n > 1)}" for n in rules)], matching)}"""
    return text, {"limit": limit_few, "limit, many": limit_many - limit_few,
                  "rules": matched[keys[0], rules[-1]]["least_ns"] / matched[keys[0], rules[0]]["least_ns"]}


def beside_another_cpu(pace):
    packet_rows, request_rows, more = at_once(pace.test_runs)
    shared = [json.loads(line) for line in run(BUILD / "shared").splitlines()]
    return f"""The same requests, while another CPU decides, too: each of the two has a connection of its own, and users are those of one limit. The median
over packets, the least of several rounds in turns, ns for one request.

{table(["", "read", "a limit for each user", "one for the server, too"], request_rows)}
Packets that bring nothing to read, of a connection of its own for each CPU, a thousand in a row, ns for one with the loop around it:

{table(["packet", "one CPU", "two CPUs"], packet_rows)}
What one packet changes in memory that other CPUs may use, in words of eight bytes: all maps but those that each CPU has for
itself are read before it and after it.

{table(["packet", "of its connection", "of others", "where"], [[line[column] for column in ("shared", "own", "others", "where")] for line in shared])}""", {
    "two CPUs": more, "shared": max(line["others"] for line in shared if "limit" not in line["shared"] and "refused" not in line["shared"])}


def memory(machine, lines):
    fixed, connection = connection_bytes(machine)
    (key,) = [line["bytes"] / line["keys"] for line in lines if line.get("keys") == 1000000 and line["limits"] == 1]
    return f"""## Memory

By the kernel's own account (`memlock`).

{table(["", "bytes"], [["all maps of a network namespace, but buckets and connections", f"{fixed:,}"],
                       [f"a connection, of {CONNECTIONS:,}", number(connection)],
                       ["a key, of 1,000,000 asked for", number(key)]])}"""


def report(machine, pace):
    lines = decisions(pace.test_runs)
    yield packets(lines, pace)
    yield at_xdp_text(lines), {}
    yield requests(lines)
    yield beside_another_cpu(pace)
    yield memory(machine, lines), {}
