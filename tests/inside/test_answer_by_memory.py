# SPDX-License-Identifier: GPL-2.0
"""`--inside answer --write-memory` on a kube-apiserver 1.20.2, on kernels that let programs write memory, but no registers."""

import pytest

from lib.process import eventually

from answering import BURST, REFUSALS, agents_change, answered, by_memory, executing, looked_into, refuses, shares_a_connection, statuses
from seeing import audited

PODS = "/api/v1/namespaces/default/pods"

pytestmark = by_memory


@pytest.fixture(scope="module")
def old(cluster):
    cluster.start_1_20(GOGC="5")
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def world(old, tmp_path_factory, bpffs):
    with looked_into(old, tmp_path_factory.mktemp("world"), bpffs, "--write-memory") as world:
        yield world


def test_one_user(world, old):
    assert world.weir.server("kube")["inside"]["text"].startswith("answer by memory (kube-apiserver v1.20.2, go1.19")
    refuses(world, old, PODS, 60, 1)


def test_one_connection(world, old):
    shares_a_connection(world, old, PODS)


def test_watches_pass(world, old):
    """They are long-running: API Priority and Fairness lets them by."""
    old.allow("grace")
    world.weir("limit", "set", "user", "grace", "--qps", 0, "--burst", 0)
    mark, before = old.audit_mark(), answered(world)
    assert statuses(old.ask("grace", f"{PODS}?watch=1&timeoutSeconds=1", 2)) == {"200": 2}
    assert statuses(old.ask("grace", PODS, 2)) == {"429": 2}
    assert answered(world) - before == 2
    eventually(lambda: audited(old, mark, "grace") == {"200": 2, "429": 2}, "the audit log has the same")


def test_very_many(world, old):
    """Each refusal that was decided is answered."""
    refuses(world, old, PODS, REFUSALS, 50, "judy")


@pytest.mark.usefixtures("usual_agent")
def test_upgraded(world, old):
    agents_change(world, old, PODS)


def test_without_an_agent(world, old):
    old.allow("erin")
    world.weir("limit", "set", "user", "erin", "--qps", 0, "--burst", BURST)
    world.weir.kill()
    assert statuses(old.ask("erin", PODS, 20)) == {"200": BURST, "429": 20 - BURST}
    eventually(lambda: executing(old) == 0, "the server's own seats are free")
