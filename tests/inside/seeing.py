# SPDX-License-Identifier: GPL-2.0
"""What weir sees inside an API server, held against what the server itself says."""
import collections
import contextlib
import json
import os

import pytest

from kube import ITSELF
from lib.process import eventually
from lib.world import World


@contextlib.contextmanager
def shared_world(directory, bpffs):
    """A world for a whole module: in a guest, to load the programs takes minutes."""
    world = World(f"weir-inside-{os.getpid()}", directory, bpffs)
    try:
        yield world
    finally:
        world.end()


def lane(world, name):
    """Which one the server has; none while the agent is busy, as it is for minutes in a guest."""
    done = world.weir.run("status", name, "--json")
    servers = json.loads(done.stdout)["servers"] if done.returncode == 0 else []
    return servers[0]["inside"]["lane"] if servers else None


def look_into(world, name, port, namespace, wanted, *options):
    """Where the kernel lets no program refuse, a test that wants to is skipped."""
    done = world.weir.run("attach", name, "--port", port, "--netns", namespace.path, "--inside", wanted, *options)
    if wanted == "answer" and "no program write" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert (done.returncode, done.stderr) == (0, "") or "does not answer" in done.stderr, done.stderr  # a guest is slow
    eventually(lambda: lane(world, name) == wanted, f"it is looked into ({done.stderr.strip()})")


def attach(world, kube, wanted="see", *options):
    world.weir.start()
    look_into(world, "kube", kube.port, kube.namespace, wanted, *options)


def user_of(request):
    """Nobody is told apart by addresses."""
    return "system:anonymous" if request["identified_by"] == "anonymous" else request["user"]


def name_in(target, resource, name):
    """The name of what is made is in the body alone, and that of a field selector in the query."""
    return name if f"/{resource}/{name}" in target else None


def of_trace(request):
    about = (request[field] or None for field in ("verb", "namespace", "group", "resource", "subresource"))
    return user_of(request), *about, name_in(request["target"], request["resource"], request["name"]), request["target"]


def of_audit(event):
    about = event.get("objectRef", {})
    name = name_in(event["requestURI"], about.get("resource"), about.get("name"))
    return (event.get("impersonatedUser", event["user"])["username"], event["verb"], about.get("namespace"),
            about.get("apiGroup"), about.get("resource"), about.get("subresource"), name, event["requestURI"])


def of_status(events, status):
    """Of an event of a watch that has only begun, the status is that of its beginning."""
    return [event for event in events if event["responseStatus"]["code"] == status]


class Compared:
    """What weir traces and what the server audits, from now on."""

    def __init__(self, world, kube):
        self.kube = kube
        self.mark = kube.audit_mark()
        self.trace = world.trace("kube")

    def end(self):
        """The requests of both, by what they are about, and what they differ in: it must be nothing. The same of those refused."""
        traced = [request for request in self.trace.end() if request["user"] != ITSELF]
        eventually(lambda: len(self.kube.audited(self.mark)) >= len(traced), "everything is in the audit log")
        audit = self.kube.audited(self.mark)
        weir, server = collections.Counter(map(of_trace, traced)), collections.Counter(map(of_audit, audit))
        assert (weir - server, server - weir) == ({}, {})
        self.refused = collections.Counter(of_trace(request) for request in traced if request["decision"] == "shed")
        server = collections.Counter(map(of_audit, of_status(audit, 429)))
        assert (self.refused - server, server - self.refused) == ({}, {})
        assert {request["identified_by"] for request in traced} <= {"server", "anonymous"}
        return weir


def by_user(requests):
    counted = collections.Counter()
    for about, n in requests.items():
        counted[about[0]] += n
    return counted


def audited(kube, mark, user):
    """Its answers to the user, by status."""
    return collections.Counter(str(event["responseStatus"]["code"]) for event in kube.audited(mark)
                               if event["user"]["username"] == user)


def totals(kube, **labels):
    """Of apiserver_request_total."""
    return sum(value for (name, said), value in kube.metrics().items()
               if name == "apiserver_request_total" and labels.items() <= dict(said).items())


def users_of(world):
    rows = world.weir.json("top", "--once", "--interval", "100ms", "--by", "user")["rows"]
    return {row["user"]: row["requests"] for row in rows}


def many_streams(world, kube, path, **labels):
    """Five users with one connection each, fifty requests at a time on it; weir's own table has each of them."""
    attach(world, kube)
    mark, before = kube.audit_mark(), totals(kube, verb="LIST", code="200", **labels)
    for i, n in enumerate((100, 250, 500, 750, 1000)):
        counts = kube.ask_for(f"user-{i}", path, n, "-streams", 50, groups=["system:masters"])
        assert counts == {"200": n, "connections": 1}
    expected = {f"user-{i}": n for i, n in enumerate((100, 250, 500, 750, 1000))}
    assert {user: n for user, n in users_of(world).items() if user in expected} == expected
    audited = collections.Counter(event["user"]["username"] for event in kube.audited(mark))
    assert {user: audited[user] for user in expected} == expected
    assert totals(kube, verb="LIST", code="200", **labels) - before == 2600
    assert not world.weir.server("kube")["seen_inside"].keys() - {"seen"}
