# SPDX-License-Identifier: GPL-2.0
"""What the control plane costs: rules in memory, changes of limits, a scrape, and either of them beside a sweep."""
import json
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

from cost import map_bytes
from figures import number, spread, table
from lib.process import run
from machine import BUILD, LOOPBACK, METRICS, NGINX
from memory import MAPS

COMMANDS = 20
PIPELINED = 48
RULES = 1000
HEAD = "GET / HTTP/1.1\r\nHost: bench\r\nX-Remote-User: user-{}\r\n\r\n"
STATUS = b"HTTP/1.1 200 "
HUGE = 1000000000
LONG_AGO_S = 100000
PAUSE_S = 0.004
SWEEPER_NICE = "10"


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


def answer_seconds(machine, i):
    """Of the same command without a process of its own."""
    limit = {"name": "total", "qps": 5, "burst": 10 + i % 2}
    request = json.dumps({"command": "limit set", "arguments": {"limit": limit}})
    start = time.monotonic()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(machine.weir.state_dir / "weir.sock"))
        connection.sendall(f"{request}\n".encode())
        answer = connection.makefile().readline()
    assert "result" in json.loads(answer), answer
    return time.monotonic() - start


def single_seconds(machine, n):
    """Of n commands, each of which sets a limit for another subject."""
    with machine.attached("--port", NGINX, limits=(("user", "--qps", 1, "--burst", 1),)):
        start = time.monotonic()
        for i in range(n):
            machine.weir("limit", "set", "user", f"user-{i}", "--qps", 5, "--burst", 10)
        return time.monotonic() - start


def changes(machine, n):
    """(a row of the table, milliseconds; seconds of the least apply; seconds of all single commands)"""
    with machine.attached("--port", NGINX, limits=()):
        first = apply(machine, overridden(n))
        one = [apply(machine, overridden(n, changed=i % n)) for i in range(COMMANDS)]
        commands = [command_seconds(machine, i) for i in range(COMMANDS)]
    single = single_seconds(machine, n)
    row = [f"{n:,}", number(first * 1000), spread([s * 1000 for s in one]), spread([s * 1000 for s in commands]), number(single)]
    return row, min(one), single


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


def sweeper_of(machine):
    """The agent's only thread that lets others go first."""
    tasks = Path(f"/proc/{machine.weir.process.pid}/task").iterdir()
    return next(task for task in tasks if (task / "stat").read_text().rsplit(")", 1)[1].split()[16] == SWEEPER_NICE)


def ran_ns(task):
    return int((task / "schedstat").read_text().split()[0])


def entries(pin):
    return int(run(BUILD / "conns", pin))


def part(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def sweep(machine, kind, pace):
    """{what: ([ms without a sweep], [ms beside one])}, while a table of connections of a kind without sockets is swept."""
    asked = {"a command": lambda: command_seconds(machine, int(time.monotonic() * 1000)),
             "the agent's answer to it": lambda: answer_seconds(machine, int(time.monotonic() * 1000)),
             "a scrape": lambda: scrape(machine, METRICS)[0]}
    times = {what: ([], []) for what in asked}
    pin, name = MAPS[kind]
    machine.weir.start(METRICS, "--connections", 2 * pace.connections)
    with machine.attached("--port", NGINX):
        task = sweeper_of(machine)
        subprocess.run([BUILD / "conns", machine.pin(pin), name, str(pace.connections), str(LONG_AGO_S)], check=True)
        end = time.monotonic() + pace.sweep_s
        while time.monotonic() < end:
            for what, ask in asked.items():
                ran, seconds = ran_ns(task), ask()
                times[what][ran_ns(task) > ran].append(seconds * 1000)
                time.sleep(PAUSE_S)
        left = entries(machine.pin(pin))
    machine.weir.start(METRICS)
    return times, left


def sweeps(machine, pace):
    rows, worst, left = [], {}, {}
    for kind in MAPS:
        times, left[kind] = sweep(machine, kind, pace)
        for what, (quiet, beside) in times.items():
            more = part(beside, 0.99) - part(quiet, 0.99)
            worst[what] = max(more, worst.get(what, more))
            rows.append([f"{kind}: {what}", len(beside), *(number(part(ms, share)) for share in (0.5, 0.99) for ms in (quiet, beside))])
    return f"""Commands and scrapes in turns, while a table of {pace.connections:,} connections is swept whose sockets are gone, and while it is not: ms.
After {pace.sweep_s} s, {" and ".join(f"{n:,} of those {kind}" for kind, n in left.items())} were left.

{table(["", "beside a sweep", "p50 without", "p50 beside", "p99 without", "p99 beside"], rows)}""", {
    f"sweep, {what}": more for what, more in worst.items()}


def report(machine, pace):
    rows, least, singles = zip(*(changes(machine, n) for n in pace.overrides))
    yield f"""## The control plane

A rule, of a limit with {RULES:,} that name a user, a verb and a path each: {number(rule_bytes(machine, RULES))} bytes of the
kernel's maps.

Changes of limits, ms that a user waits: `weir apply` of a Throttle with so many overrides, of the same with one of them
changed, and a `weir limit set` beside them. And seconds for so many `weir limit set`, each for another subject.

{table(["overrides", "apply", "one changed", "limit set", "single commands, s"], rows)}""", {
    "apply": least[-1] * 1000, "commands": singles[-1]}
    yield f"""A scrape of `/metrics` when so many users have a bucket.

{table(["users", "ms", "CPU of the agent, ms", "bytes"], [scrapes(machine, pace, keys) for keys in pace.keys])}""", {}
    yield sweeps(machine, pace)
