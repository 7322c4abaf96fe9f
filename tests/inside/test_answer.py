# SPDX-License-Identifier: GPL-2.0
"""`--inside answer` on a kube-apiserver 1.20.2."""
import shutil

import pytest

from kube import got
from lib.process import eventually

from answering import BURST, REFUSALS, agents_change, answered, executing, looked_into, refuses, served, shares_a_connection, statuses
from seeing import audited, lane
from watching import limits_watches

PODS = "/api/v1/namespaces/default/pods"
LONG_RUNNING = [f"{PODS}/none/{what}" for what in ("log", "exec?command=true", "attach", "portforward", "proxy/")]

OFTEN = {"GOGC": "5"}  # its garbage collector hardly ever rests: stacks move, goroutines are preempted


@pytest.fixture(scope="module")
def old(cluster):
    cluster.start_1_20(**OFTEN)
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def world(old, tmp_path_factory, bpffs):
    with looked_into(old, tmp_path_factory.mktemp("world"), bpffs) as world:
        yield world


def test_one_user(world, old):
    refuses(world, old, PODS, 60, 1)


def test_one_connection(world, old):
    shares_a_connection(world, old, PODS)


def test_without_an_agent(world, old):
    old.allow("erin")
    world.weir("limit", "set", "user", "erin", "--qps", 0, "--burst", BURST)
    world.weir.kill()
    assert statuses(old.ask("erin", PODS, 60, "-streams", 10)) == served(60)
    world.weir.start()
    assert statuses(old.ask("erin", PODS, 60, "-streams", 10)) == {"429": 60}


def test_kubectl_is_told(world, old):
    old.allow("frank")
    world.weir("limit", "set", "user", "frank", "--qps", 0, "--burst", 0)
    said = old.kubectl("get", "--raw", PODS, name="frank", check=False)
    assert "toomanyrequests" in said.lower().replace(" ", ""), said


def test_watches(world, old):
    limits_watches(world, old, PODS, refuses=True)
    eventually(lambda: executing(old) == 0, "the server's own seats are free")


def test_what_no_priority_level_sees(world, old):
    """They are long-running: API Priority and Fairness lets them by. They are refused where they are authorized."""
    old.allow("heidi")
    for path in LONG_RUNNING:
        assert statuses(old.ask("heidi", path)) == {"404": 1}, path
    world.weir("limit", "set", "user", "heidi", "--qps", 0, "--burst", 0)
    mark, before = old.audit_mark(), answered(world)
    for path in LONG_RUNNING:
        assert statuses(old.ask("heidi", path, 3)) == {"429": 3}, path
    n = 3 * len(LONG_RUNNING)
    assert answered(world) - before == n
    eventually(lambda: audited(old, mark, "heidi") == {"429": n}, "the audit log has the same")


def test_denied(world, old):
    old.allow("ivan")
    world.weir("limit", "set", "user", "ivan", "--deny")
    mark, before = old.audit_mark(), answered(world)
    for path in PODS, f"{PODS}?watch=1", *LONG_RUNNING:
        assert statuses(old.ask("ivan", path, 3)) == {"403": 3}, path
    n = 3 * (2 + len(LONG_RUNNING))
    eventually(lambda: audited(old, mark, "ivan") == {"403": n}, "the audit log has the same")
    assert answered(world) - before == n
    eventually(lambda: executing(old) == 0, "the server's own seats are free")


def test_ten_thousand(world, old):
    """Each refusal that was decided is answered."""
    refuses(world, old, PODS, REFUSALS, 50, "judy")


def none_left(world, kube, user):
    """The user has had his requests already: each is refused, whatever has come and gone since."""
    before = answered(world)
    assert statuses(kube.ask(user, PODS, 60, "-streams", 10)) == {"429": 60}
    assert answered(world) - before == 60


def use_up(world, kube, user):
    kube.allow(user)
    world.weir("limit", "set", "user", user, "--qps", 0, "--burst", BURST)
    assert statuses(kube.ask(user, PODS, BURST)) == {"200": BURST}


@pytest.mark.usefixtures("usual_agent")
def test_upgraded(world, old):
    agents_change(world, old, PODS)
    none_left(world, old, "kim")


def test_restarted_and_replaced(world, old, tmp_path):
    """By another file under another path, as an upgrade of the server does."""
    use_up(world, old, "leo")
    none_left(world, old, "leo")
    old.stop()
    old.start_1_20(binary=shutil.copy(got("kube-apiserver"), tmp_path / "kube-apiserver"), **OFTEN)
    eventually(lambda: lane(world, "kube") == "answer" and
               [process["pid"] for process in world.weir.server("kube")["inside"]["processes"]] == [old.pid()],
               "the next one is looked into")
    none_left(world, old, "leo")
    assert statuses(old.ask("admin", PODS, 60, "-streams", 10)) == {"200": 60}
