# SPDX-License-Identifier: GPL-2.0
"""What is to be reached, and the table that says of each whether it is: of all that the parts of a run should measure, measured or not."""
from typing import NamedTuple

from figures import number, table


class Target(NamedTuple):
    part: str
    text: str
    sign: str = ""  # without one: a figure that stands beside the others
    bound: float = 0
    wanted: bool = False  # not promised: where we want to be

    def is_met(self, value):
        return value >= self.bound if self.sign == ">=" else value <= self.bound

    def cells(self, value):
        """`value`: a number, or why there is none."""
        if isinstance(value, str):
            return [self.text, f"not measured: {value}", self.bound_text(), "**no**"]
        if not self.sign:
            return [self.text, number(value), "", ""]
        no = "no" if self.wanted else "**no**"
        return [self.text, number(value), self.bound_text(), "yes" if self.is_met(value) else no]

    def bound_text(self):
        return f"{self.sign} {self.bound:,}{', wanted' * self.wanted}" if self.sign else ""


EMPTY = "ns above a program that does nothing"

TARGETS = {
    "passing": Target("passing", "nginx, `return 200`, requests/s: attached to detached", ">=", 0.85),
    "passing, wanted": Target("passing", "the same", ">=", 0.93, wanted=True),
    "passing, HAProxy": Target("passing", "the same of HAProxy in front, to none"),
    "passing, CPU": Target("passing", "the same at a fixed rate: more CPU of the whole machine, %"),
    "shedding, loopback": Target("shedding", "CPU for a refused request, weir to `limit_req`: loopback, machine less generator", "<=", 0.4),
    "shedding, host": Target("shedding", "the same: veth, the server's host", "<=", 0.4),
    "shedding, server": Target("shedding", "the same: veth, the server's process", "<=", 0.05),
    "shedding, rate": Target("shedding", "429s/s in a closed loop, weir to `limit_req`", ">=", 1.1),
    "shedding, p50": Target("shedding", "p50 of a 429, one connection, weir to `limit_req`", "<=", 0.5),
    "flood": Target("flood", "connections of a neighbour that failed in a flood of SYNs, with weir", "<=", 0),
    "exchange": Target("cost", f"a request and its answer, two limits, all programs, {EMPTY}", "<=", 1600),
    "reading": Target("cost", "reading the heads of the two, which have come before, the same", "<=", 300),
    "reading, found": Target("cost", "the same above a program that finds memory and connection, and reads nothing"),
    "reading, others": Target("cost", "reading two heads that have not come before, above a program that does nothing"),
    "foreign": Target("cost", f"a packet of others, {EMPTY}", "<=", 10),
    "acknowledgement": Target("cost", "a pure acknowledgement of a followed connection, the same", "<=", 50),
    "acknowledgement, many": Target("cost", "the same with 1,000,000 connections, ns above one look-up of the connection", "<=", 50),
    "look-ups": Target("cost", "the same: how often connections are looked up", "<=", 1),
    "hold": Target("cost", f"what the hold looks at on a followed connection, {EMPTY}", "<=", 60),
    "body": Target("cost", "a packet of a body, the same", "<=", 60),
    "limit": Target("cost", "each of two limits, one of them for ten users, ns", "<=", 120),
    "limit, many": Target("cost", "more of that for 1,000,000 users, ns", "<=", 300),
    "rules": Target("cost", "a request with 1,000 rules, of which the last matches, to one rule", "<=", 1.05),
    "shared": Target("cost", "what any packet changes of what CPUs share, but buckets and its connection, words", "<=", 0),
    "two CPUs": Target("cost", "an acknowledgement, a packet of a body or of others while another CPU has one, too: more ns", "<=", 10),
    "resting, one": Target("memory", "bytes of a connection that rests, by the kernel's account", "<=", 256),
    "resting, all": Target("memory", "1,000,000 of them, with their tables, MB", "<=", 300),
    "apply": Target("control", "`apply` with one of 10,000 overrides changed, least, ms", "<=", 30),
    "commands": Target("control", "10,000 single commands, s", "<=", 30),
    "sweep, a command": Target("control", "beside the sweep of 1,000,000 connections, awake or at rest, p99 less that without: a command, ms", "<=", 10),
    "sweep, the agent's answer to it": Target("control", "the same: the agent's answer to it", "<=", 10),
    "sweep, a scrape": Target("control", "the same: a scrape", "<=", 10),
    "inside, loop": Target("inside", "see and decide in a server without a network: ns a request, above an empty program", "<=", 1500),
    "inside, small, busy": Target("inside", "the same in a small TLS server that answers as many as it can: ns of a hit, the least turn", "<=", 1500),
    "inside, small": Target("inside", "the same at 1,000 requests/s", "<=", 1500),
    "inside, kube, busy": Target("inside", "the same in a kube-apiserver that answers as many as it can", "<=", 2000),
    "inside, kube": Target("inside", "the same at 1,000 requests/s", "<=", 2000),
    "inside, kube, CPU": Target("inside", "the same: more CPU, %", "<=", 2),
}


def targets_table(parts, values, failures):
    """`failures`: {part: why it has not measured all}."""
    rows = [target.cells(values.get(name, failures.get(target.part, "the run was broken off")))
            for name, target in TARGETS.items() if target.part in parts]
    without = failures.keys() - {target.part for target in TARGETS.values()}
    rows += [[f"the part `{part}`", f"not measured: {failures[part]}", "", "**no**"] for part in parts if part in without]
    return table(["", "measured", "target", "met"], rows)
