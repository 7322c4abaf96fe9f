# SPDX-License-Identifier: GPL-2.0
"""Refusals by an API server itself, as weir has decided them: client, audit log, metrics and weir agree to the request."""
import collections

from lib.process import eventually
from seeing import attach

BURST = 6


def served(n, burst=BURST):
    return {"200": burst, "429": n - burst}


def statuses(counts):
    """Answers by status: no request may have failed in another way."""
    return {status: n for status, n in counts.items() if status not in ("connections", "retry_after")}


def audited(kube, mark, user):
    return collections.Counter(str(event["responseStatus"]["code"]) for event in kube.audited(mark)
                               if event["user"]["username"] == user)


def executing(kube):
    """Requests that API Priority and Fairness takes for executing, but for the one that asks."""
    return sum(value for (name, _), value in kube.metrics().items()
               if name.startswith("apiserver_flowcontrol_current_executing")) - 1


def refuses(world, kube, path, n, streams):
    """alice has a few requests, and admin all of his, at the same time."""
    attach(world, kube, "answer")
    kube.allow("alice")
    world.weir("limit", "set", "user", "alice", "--qps", 0, "--burst", BURST)
    mark, before = kube.audit_mark(), world.weir.server("kube")["shed"]
    assert statuses(kube.ask("alice", path, n, "-streams", streams)) == served(n)
    assert statuses(kube.ask("admin", path, 60, "-streams", streams)) == {"200": 60}
    assert world.weir.server("kube")["shed"] - before == n - BURST
    eventually(lambda: audited(kube, mark, "alice") == served(n), "the audit log has the same")
    assert executing(kube) <= 0
    assert kube.server.running()


def shares_a_connection(world, kube, path):
    """Two users of an authenticating proxy on one connection: only one of them is refused."""
    attach(world, kube, "answer")
    kube.allow("carol")
    kube.allow("dave")
    world.weir("limit", "set", "user", "carol", "--qps", 0, "--burst", BURST)
    mark = kube.audit_mark()
    counts = kube.ask_for("carol|dave", path, 400, "-streams", 50)
    assert counts["connections"] == 1
    assert statuses(counts) == {"200": 200 + BURST, "429": 200 - BURST}
    eventually(lambda: audited(kube, mark, "carol") == served(200), "the audit log has the same of carol")
    assert audited(kube, mark, "dave") == {"200": 200}
