# SPDX-License-Identifier: GPL-2.0
"""Refusals by an API server itself, as weir has decided them: client, audit log, metrics and weir agree to the request."""
import collections
import concurrent.futures
import contextlib
import os
import platform
import re
import threading

import pytest

from lib.process import eventually
from lib.weir import BINARY, OTHER_PROGRAMS
from seeing import attach, audited, lane, shared_world

BURST = 6
REFUSALS = int(os.environ.get("REFUSALS") or 10000)  # of the tests with very many
REGISTERS_SINCE = 6, 18

# A mark, for tests of servers that refuse by memory.
by_memory = pytest.mark.skipif(tuple(map(int, re.findall(r"\d+", platform.release())[:2])) >= REGISTERS_SINCE,
                               reason="weir writes registers here, or nothing")


@contextlib.contextmanager
def looked_into(kube, directory, bpffs, *options):
    """A world whose agent has the server refuse."""
    with shared_world(directory, bpffs) as world:
        attach(world, kube, "answer", *options)
        yield world


def answered(world):
    return world.weir.server("kube")["seen_inside"].get("answered", 0)


def refused(world):
    """How many requests weir has decided to refuse, and how many the server then refused: by that decision, or by itself, where API
    Priority and Fairness has no seat and comes first."""
    return world.weir.server("kube")["shed"], answered(world) + world.weir.server("kube")["seen_inside"].get("rejected", 0)


def served(n, burst=BURST):
    return {"200": burst, "429": n - burst}


def statuses(counts):
    """Answers by status: no request may have failed in another way."""
    return {status: n for status, n in counts.items() if status not in ("connections", "retry_after")}


def executing(kube):
    """What API Priority and Fairness takes for executing, at all levels but that of the one who asks."""
    return sum(value for (name, labels), value in kube.metrics().items()
               if name.startswith("apiserver_flowcontrol_current_executing") and ("priority_level", "exempt") not in labels)


def rejections(kube):
    """Requests that the server says it has ended early with 429."""
    return sum(value for (name, labels), value in kube.metrics().items()
               if name == "apiserver_request_terminations_total" and ("code", "429") in labels)


def refuses(world, kube, path, n, streams, user="alice", counts_itself=True):
    """The user has a few requests, and admin all of his. counts_itself: the server's metrics know what it has refused, as they
    do where API Priority and Fairness refuses."""
    kube.allow(user)
    world.weir("limit", "set", "user", user, "--qps", 0, "--burst", BURST)
    mark, before, rejected = kube.audit_mark(), refused(world), rejections(kube)
    if counts_itself:  # one after the other: API Priority and Fairness rejects none of these
        assert statuses(kube.ask(user, path, BURST)) == {"200": BURST}
        assert statuses(kube.ask(user, path, n - BURST, "-streams", streams)) == {"429": n - BURST}
    else:
        assert statuses(kube.ask(user, path, n, "-streams", streams)) == served(n)
    assert statuses(kube.ask("admin", path, 60, "-streams", streams)) == {"200": 60}
    eventually(lambda: audited(kube, mark, user) == served(n), "the audit log has the same")
    assert [now - then for now, then in zip(refused(world), before)] == [n - BURST, n - BURST]
    if counts_itself:
        assert rejections(kube) - rejected == n - BURST
    eventually(lambda: executing(kube) == 0, "the server's own seats are free")
    assert kube.server.running()


def shares_a_connection(world, kube, path):
    """Two users of an authenticating proxy on one connection. The same limit names both; one of them is exempt by his group."""
    kube.allow("carol")
    for user in "carol", "dave":
        world.weir("limit", "set", "user", user, "--qps", 0, "--burst", BURST)
    mark, before = kube.audit_mark(), refused(world)
    counts = kube.ask_for("carol|dave", path, 400, "-streams", 50, groups=["dev|system:masters"])
    assert counts["connections"] == 1
    assert statuses(counts) == {"200": 200 + BURST, "429": 200 - BURST}
    eventually(lambda: audited(kube, mark, "carol") == served(200), "the audit log has the same of carol")
    assert audited(kube, mark, "dave") == {"200": 200}
    assert [now - then for now, then in zip(refused(world), before)] == [200 - BURST] * 2


@contextlib.contextmanager
def asking(kube, user, path):
    """The user asks again and again, fifty times at once, until this is over. Then it has his answers."""
    answers, over = collections.Counter(), threading.Event()

    def ask():
        while not over.is_set():
            answers.update(statuses(kube.ask(user, path, 100, "-streams", 50)))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask)
        try:
            yield answers
        finally:
            over.set()
    asked.result()


def agents_change(world, kube, path, user="kim"):
    """Killed, and followed by an agent whose programs are others, and back, while requests come. Behind it the test has the usual one
    (usual_agent)."""
    kube.allow(user)
    world.weir("limit", "set", "user", user, "--qps", 0, "--burst", BURST)
    mark, before = kube.audit_mark(), refused(world)
    assert statuses(kube.ask(user, path, BURST)) == {"200": BURST}
    with asking(kube, user, path) as answers:
        for binary in OTHER_PROGRAMS, BINARY:
            world.weir.kill()
            world.weir.binary = binary
            world.weir.start()
            eventually(lambda: lane(world, "kube") == "answer", "the next agent has taken over")
    assert answers.keys() == {"429"}
    eventually(lambda: audited(kube, mark, user) == {"200": BURST, **answers}, "the audit log has the same")
    assert [now - then for now, then in zip(refused(world), before)] == [answers["429"]] * 2
    eventually(lambda: executing(kube) == 0, "the server's own seats are free")
