# SPDX-License-Identifier: GPL-2.0
"""
From one build of weir to another whose programs have other instructions, and back, while connections are in the midst of
all that there is: nobody notices, nobody gets past a limit, nothing is forgotten. And to one that wants other maps: it
refuses, and says the way out.
"""
import json
import re
import threading
import time
from pathlib import Path

import pytest

from lib import kernel
from lib.process import PATIENCE_S, eventually, run
from lib.tls import TlsClient, TlsServer
from lib.weir import BINARY, OTHER_MAPS, OTHER_PROGRAMS
from test_detach import Load
from test_survive import BURST, RATE, Steady, counted
from test_uninstall import Traces

LARGE = 4_000_000  # more than the buffers between a server and a client take
NO_CGROUP2 = "cgroup2" not in Path("/proc/mounts").read_text()


# --- What is going on: each goes up to where the other build takes over, then to where the first one is back, then to its end.


def half_used_bucket(site):
    site.limit("user", "half", burst=10)
    client = site.client("half")
    assert client.drive(4) == [200] * 4
    yield
    assert client.drive(3) == [200] * 3
    yield
    assert client.drive(5) == [200] * 3 + [429] * 2


def request_in_parts(site):
    """The head, and a body that is counted byte by byte."""
    client = site.client("parts")
    body = b"part" * 30_000
    head = client.head("/parts?echo=1", "POST", Content_Length=len(body))
    client.send(head[:40])
    client.settle()
    yield
    client.send(head[40:] + body[:50_000])
    client.settle()
    yield
    client.send(body[50_000:])
    assert client.check(client.read(), "/parts?echo=1", "POST", body) == 200
    assert client.get("/after") == 200


def translated(site, user, **options):
    """A client with a 429 behind it, and no limit of its own any more."""
    site.limit("user", user, burst=1)
    client = site.client(user, **options)
    assert client.drive(2) == [200, 429]
    site.weir("limit", "delete", "user", user)
    return client


def long_answer(site, client):
    """The server cannot send more before the client has read some."""
    def hear(n):
        while len(client.stream.buffer) < n:
            assert client.stream.fill()

    target = f"/long?size={LARGE}"
    client.ask(target)
    hear(1000)
    yield
    hear(LARGE // 2)
    yield
    assert client.check(client.read(), target) == 200
    assert client.get("/after") == 200


def long_answer_untouched(site):
    return long_answer(site, site.client("reader", receive_buffer=4096))


def long_answer_translated(site):
    return long_answer(site, translated(site, "slow-reader", receive_buffer=4096))


def unacknowledged_refusal(site):
    """The client has not read its 429 yet."""
    client = translated(site, "late")
    for _ in range(2):
        site.limit("user", "late", burst=0)
        shed = site.status()["shed"]
        client.ask("/late")
        eventually(lambda: site.status()["shed"] > shed, "it is refused")
        yield
        assert client.check(client.read(), "/late") == 429
        site.weir("limit", "delete", "user", "late")
        assert client.get("/not/late") == 200


def seat_in_flight(site):
    """It is kept as long as the server takes, and given back to whoever serves then."""
    def taken():
        return site.limit_of("one")["in_flight"]

    def ask():
        client.ask("/?held=1")
        eventually(lambda: taken() == 1, "one is being served")
        assert other.get("/refused") == 429

    def be_served():
        assert other.get("/refused") == 429
        site.server.gate.set()
        assert client.check(client.read(), "/?held=1") == 200
        eventually(lambda: taken() == 0, "the seat is free")
        assert other.get("/free") == 200
        site.server.gate.clear()

    site.weir("limit", "set", "one", "--key", "user", "--for-user", "serial", "--in-flight", 1)
    client, other = site.client("serial"), site.client("serial")
    ask()
    yield
    be_served()
    ask()
    yield
    be_served()


STORIES = (half_used_bucket, request_in_parts, long_answer_untouched, long_answer_translated, unacknowledged_refusal,
           seat_in_flight)


class Transfers:
    """Large bodies either way on translated connections, all the time."""

    def __init__(self, site, users):
        self.failures, self.stopping = [], threading.Event()
        clients = [translated(site, user) for user in users]
        self.threads = [threading.Thread(target=self.run, args=(client,), daemon=True) for client in clients]
        for thread in self.threads:
            thread.start()

    def run(self, client):
        n = 0
        try:
            while not self.stopping.wait(0.02):
                n += 1
                assert client.get(f"/down/{n}?size=3000000") == 200
                assert client.exchange(f"/up/{n}?echo=1", "POST", b"%d" % n * 100_000).status == 200
        except BaseException as failure:
            self.failures.append((n, failure))

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        assert not self.failures, self.failures


# --- Which programs are in force


def filters(namespace):
    """The programs of clsact filters: {where: id}."""
    found = {}
    for device in ("lo", "eth0"):
        for direction in ("ingress", "egress"):
            listed = json.loads(namespace.run("tc", "-j", "filter", "show", "dev", device, direction) or "[]")
            found.update({f"{device} {direction}": each["options"]["prog"]["id"] for each in listed if "options" in each})
    return found


def programs(world):
    """All that are attached: {where: (id, tag)}; the tag is a hash of the instructions."""
    ids = {pin.name: json.loads(run("bpftool", "-j", "link", "show", "pinned", pin))["prog_id"]
           for pin in world.pins.rglob("link-*")}
    ids.update(filters(world.namespaces[0]))
    return {where: (number, json.loads(run("bpftool", "-j", "prog", "show", "id", number))["tag"])
            for where, number in ids.items()}


def check_replaced(first, other, again):
    """Both times all of them; those of another build are others."""
    assert first and first.keys() == other.keys() == again.keys()
    for where, (number, tag) in first.items():
        assert len({number, other[where][0], again[where][0]}) == 3, f"{where} keeps a program of before"
        assert again[where][1] == tag
    limiting = [where for where in first if "sockops" not in where]  # there is little in it: both builds are the same
    assert limiting and not [where for where in limiting if first[where][1] == other[where][1]]


def change(world, how, binary):
    """Returns what is attached afterwards."""
    getattr(world.weir, how)()
    world.weir.binary = binary
    world.weir.start()
    return programs(world)


def test_back_and_forth(world):
    site = world.site(world.veth())
    site.attach()
    site.limit("user", "noisy", qps=RATE, burst=BURST)
    began, load, steady = time.monotonic(), Load(site, ["noisy"] * 2), Steady(site, "steady", 0.01)
    transfers = Transfers(site, ["one", "two"])
    stories = [story(site) for story in STORIES]
    seen, told = [programs(world)], []
    for how, binary in (("kill", OTHER_PROGRAMS), ("stop", BINARY)):
        for story in stories:
            next(story)
        load.more(20)
        told.append(counted(site))
        seen.append(change(world, how, binary))
        told.append(counted(site))
        load.more(20)
    for story in stories:
        assert next(story, "over") == "over"
    load.stop()
    steady.stop()
    transfers.stop()
    check_replaced(*seen)
    assert all(earlier <= later for before, after in zip(told, told[1:]) for earlier, later in zip(before, after)), told
    assert BURST < load.count(200) <= BURST + RATE * (time.monotonic() - began)
    assert len(site.server.connections) == len(site.clients)
    site.check(passed=site.heard(200), shed=site.heard(429))


@pytest.mark.skipif(NO_CGROUP2, reason="no cgroup2 is mounted")
@pytest.mark.parametrize("hold", ["drop", "auto"])
def test_what_is_held(world, hold):
    """It goes on waiting, and what has passed stays charged."""
    def records():
        server = weir.server("web")
        return server["records_passed"], server["records_held"]

    place, weir = world.veth(), world.weir
    server = TlsServer(place.server_ns, place.address, world.directory)
    world.at_end(server.close)
    weir.start()
    weir("attach", "web", "--port", server.port, "--netns", place.server_ns.path, "--hold", hold)
    weir("limit", "set", "user", "--qps", 0, "--burst", 6)
    passing, waiting = TlsClient(place, server.port), TlsClient(place, server.port)
    world.at_end(passing.close)
    world.at_end(waiting.close)
    seen = [programs(world)]
    passing.drive(2)
    seen.append(change(world, "kill", OTHER_PROGRAMS))
    passing.drive(4)
    waiting.ask("/late")
    eventually(lambda: records() == (6, 1), "it is held")
    seen.append(change(world, "stop", BINARY))
    assert (records(), server.served()) == ((6, 1), 6)
    weir("limit", "set", "user", "--qps", 10, "--burst", 6)
    assert waiting.read() == "/late"
    assert records() == (7, 1)
    check_replaced(*seen)


# --- Maps of another layout


def refusing(site):
    """Says what is in the way of an agent that wants other maps."""
    site.weir.binary = OTHER_MAPS
    site.weir.start()
    return site.status()["problem"]


def answers(site):
    """What `weir probe` says beforehand, of the namespace and of the maps that are in force there."""
    said = json.loads(site.weir.run("probe", "--json", "--netns", site.place.server_ns.path).stdout)
    (lane,) = [lane for lane in said["lanes"] if lane["lane"] == "answer"]
    (maps,) = [fact for fact in said["facts"] if fact["probe"] == "maps"]
    return lane["mode"], lane["reason"], maps["result"], maps["why"]


POLICY = """\
apiVersion: weir/v1
kind: Throttle
metadata: {name: web}
spec: {limits: [{name: total, qps: 1000, burst: 1000}]}
"""
NOTHING_YET = "is saved, and changes nothing yet"
# What is said of a change that is saved alone.
CHANGED_LATER = {
    ("pause",): f'server "web" is not in force: its pause {NOTHING_YET}',
    ("resume",): f'server "web" is not in force: the end of its pause {NOTHING_YET}',
    ("dry-run", "web", "on"): f'server "web" is not in force: its dry run {NOTHING_YET}',
    ("dry-run", "web", "off"): f'server "web" is not in force: the end of its dry run {NOTHING_YET}',
    ("limit", "set", "total", "--qps", 1000, "--burst", 1000): 'server "web": limit total is set; the server is not in force',
    ("limit", "set", "total", "--dry-run"): 'server "web": limit total is set, in a dry run; the server is not in force',
    ("limit", "delete", "total"): 'server "web": limit total is deleted; the server is not in force',
    ("max-in-flight", "--read-only", 5):
        'server "web": 5 read-only and any number of mutating requests may be in flight, once it is in force',
    ("max-in-flight", "--read-only", 0):
        'server "web": any number of read-only and any number of mutating requests may be in flight, once it is in force',
    ("apply", "-f", "POLICY"): 'server "web": Throttle web configured',
    ("delete", "-f", "POLICY"):
        'server "web": Throttle web deleted; the server stays attached with what commands have set ("weir detach web" ends it)',
}


def changed_later(weir, problem, policy):
    """Commands that change what is not in force do so, and each says that, and warns that the kernel has nothing of it."""
    policy.write_text(POLICY)
    for words, says in CHANGED_LATER.items():
        done = weir.run(*(policy if word == "POLICY" else word for word in words))
        assert (done.returncode, done.stdout) == (0, says + "\n"), done
        assert done.stderr.count("\n") == 1, done
        assert f'server "web" is not in force, and the kernel has what it had before: {problem}' in done.stderr


def test_other_maps(world, tmp_path):
    """What is in force stays so, until one of both ways out is taken: back to the first build, or all at once."""
    place = world.veth()
    traces = Traces(world, place.server_ns, place.client_ns)
    site = world.site(place)
    site.attach()
    site.limit("user", "noisy", burst=3)
    noisy, quiet = site.client("noisy"), site.client("quiet")
    assert noisy.drive(3) + quiet.drive(2) == [200] * 5
    site.weir.kill()
    assert answers(site) == ("full", None, "yes", None)
    problem = refusing(site)
    assert answers(site) == ("none", "other_version", "no", problem)
    assert re.search(r"made by another version of weir \(ABI \d+, this one has 1000\)", problem)
    assert 'detach with that version, or use "weir uninstall --force"' in problem
    assert noisy.drive(2) + quiet.drive(2) == [429, 429, 200, 200]
    changed_later(site.weir, problem, tmp_path / "policy.yaml")
    assert noisy.drive(1) + quiet.drive(1) == [429, 200]
    assert site.weir.refused("uninstall") == f"weir: {problem}"
    assert site.status()["problem"] == problem, "its agent goes on"
    site.weir.stop()
    assert site.weir.refused("uninstall") == f"weir: {problem}"

    site.weir.binary = BINARY
    site.weir.start()
    assert noisy.drive(2) + quiet.drive(2) == [429, 429, 200, 200]
    site.check(passed=10, shed=5)
    site.weir.stop()

    objects = kernel.pinned(world.pins)
    refusing(site)
    site.weir("uninstall", "--force")
    traces.gone(objects)
    assert quiet.drive(3) == [200] * 3
    site.weir.start()
    site.attach()
    site.limit("user", "noisy", burst=1)
    assert site.client("noisy").drive(2) == [200, 429]


def test_handed_over(world):
    """The other way out: the first build takes what is in force away, and the other one begins anew, with full buckets and free seats."""
    place = world.veth()
    site = world.site(place)
    site.attach()
    site.limit("user", "noisy", burst=3)
    site.weir("limit", "set", "one", "--key", "user", "--for-user", "serial", "--in-flight", 1)
    noisy, serial = site.client("noisy"), site.client("serial")
    assert noisy.drive(4) == [200] * 3 + [429]
    serial.ask("/?held=1")
    eventually(lambda: site.limit_of("one")["in_flight"] == 1, "one is being served")
    exported = world.directory / "all.yaml"
    exported.write_text(site.weir("export"))
    site.weir("detach", "--all", "--force")
    site.server.gate.set()
    assert not kernel.pinned(world.pins)
    site.weir.stop()

    site.weir.binary = OTHER_MAPS
    site.weir.start()
    site.weir("apply", "-f", exported)
    assert site.client("noisy").drive(4) == [200] * 3 + [429]
    assert site.limit_of("one")["in_flight"] == 0
    assert site.client("serial").get("/free") == 200
