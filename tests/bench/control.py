# SPDX-License-Identifier: GPL-2.0
"""What the control plane costs: rules in memory, changes of limits, a scrape."""
import json
import socket
import time
import urllib.request
from pathlib import Path

from cost import map_bytes
from figures import number, spread, table
from machine import LOOPBACK, METRICS, NGINX

COMMANDS = 20
PIPELINED = 48
RULES = 1000
HEAD = "GET / HTTP/1.1\r\nHost: bench\r\nX-Remote-User: user-{}\r\n\r\n"
STATUS = b"HTTP/1.1 200 "
HUGE = 1000000000


def throttle(**spec):
    return json.dumps({"apiVersion": "weir/v1", "kind": "Throttle", "metadata": {"name": "bench"}, "spec": spec})


def overridden(n, changed=None):
    """A limit that n users have of their own, one of them another than before."""
    overrides = [{"subject": f"user-{i}", "qps": 5, "burst": 10 if i != changed else 20} for i in range(n)]
    return throttle(limits=[{"name": "user", "qps": 1, "burst": 1, "overrides": overrides}])


def ruled(n):
    rules = [{"users": [f"user-{i}"], "verbs": ["get"], "paths": [f"/path-{i}"]} for i in range(n)]
    return throttle(limits=[{"name": "ruled", "key": "user", "qps": 1, "burst": 1, "rules": rules}])


def apply(machine, text):
    """Seconds it took."""
    path = machine.dir / "policy.json"
    path.write_text(text)
    start = time.monotonic()
    machine.weir("apply", "-f", path)
    return time.monotonic() - start


def rule_bytes(machine, n):
    """Of the kernel's maps, for each of n rules."""
    with machine.attached("--port", NGINX, limits=()):
        apply(machine, ruled(1))
        one = sum(map_bytes(machine).values())
        apply(machine, ruled(n))
        return (sum(map_bytes(machine).values()) - one) / (n - 1)


def command_seconds(machine, i):
    start = time.monotonic()
    machine.weir("limit", "set", "total", "--qps", 5, "--burst", 10 + i % 2)
    return time.monotonic() - start


def changes(machine, pace, n):
    """A row of the table: milliseconds."""
    with machine.attached("--port", NGINX, limits=()):
        first = apply(machine, overridden(n))
        one = [apply(machine, overridden(n, changed=i % n)) for i in range(pace.rounds)]
        commands = [command_seconds(machine, i) for i in range(COMMANDS)]
    return [f"{n:,}", number(first * 1000), spread([s * 1000 for s in one]), spread([s * 1000 for s in commands])]


def read_answers(connection, n):
    """Reads n answers, all of them passed."""
    text = b""
    while text.count(STATUS) < n or not text.endswith(b"served by nginx\n"):
        part = connection.recv(1 << 20)
        assert part, "the server closed the connection"
        text += part


def ask_as(users):
    """A request of each, over one connection."""
    with socket.create_connection((LOOPBACK, NGINX)) as connection:
        for first in range(0, len(users), PIPELINED):
            some = users[first:first + PIPELINED]
            connection.sendall("".join(HEAD.format(user) for user in some).encode())
            read_answers(connection, len(some))


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def scrape(machine, address):
    """(seconds, CPU seconds of the agent, bytes)"""
    cpu, start = cpu_seconds(machine.weir.process.pid), time.monotonic()
    with urllib.request.urlopen(f"http://{address}/metrics") as answer:
        size = len(answer.read())
    return time.monotonic() - start, cpu_seconds(machine.weir.process.pid) - cpu, size


def scrapes(machine, pace, keys):
    options = "--port", NGINX, "--keys", keys, "--trusted-proxy", "127.0.0.0/8", "--new-subjects", f"{HUGE}:{HUGE}"
    with machine.attached(*options, limits=(("user", "--qps", HUGE, "--burst", HUGE),)):
        ask_as(range(keys))
        taken = [scrape(machine, METRICS) for _ in range(pace.rounds)]
    seconds, cpu, size = zip(*taken)
    return [f"{keys:,}", spread([s * 1000 for s in seconds]), number(sum(cpu) / len(cpu) * 1000), number(size[-1])]


def report(machine, pace):
    changed = [changes(machine, pace, n) for n in pace.overrides]
    text = f"""## The control plane

A rule, of a limit with {RULES:,} that name a user, a verb and a path each: {number(rule_bytes(machine, RULES))} bytes of the
kernel's maps.

Changes of limits, ms that a user waits: `weir apply` of a Throttle with so many overrides, of the same with one of them
changed, and a `weir limit set` beside them.

{table(["overrides", "apply", "one changed", "limit set"], changed)}
A scrape of `/metrics` when so many users have a bucket.

{table(["users", "ms", "CPU of the agent, ms", "bytes"], [scrapes(machine, pace, keys) for keys in pace.keys])}
"""
    return text, []
