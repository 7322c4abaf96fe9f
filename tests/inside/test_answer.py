# SPDX-License-Identifier: GPL-2.0
"""`--inside answer` on a kube-apiserver 1.20.2, whose garbage collector hardly ever rests."""
import pytest

from answering import BURST, refuses, served, shares_a_connection, statuses
from seeing import attach

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def old(cluster):
    cluster.start_1_20(GOGC="5")
    yield cluster
    cluster.stop()


def test_one_user(world, old):
    refuses(world, old, PODS, 60, 1)


def test_one_connection(world, old):
    shares_a_connection(world, old, PODS)


def test_without_an_agent(world, old):
    attach(world, old, "answer")
    old.allow("erin")
    world.weir("limit", "set", "user", "erin", "--qps", 0, "--burst", BURST)
    world.weir.kill()
    assert statuses(old.ask("erin", PODS, 60, "-streams", 10)) == served(60)
    world.weir.start()
    assert statuses(old.ask("erin", PODS, 60, "-streams", 10)) == {"429": 60}


def test_kubectl_is_told(world, old):
    attach(world, old, "answer")
    old.allow("frank")
    world.weir("limit", "set", "user", "frank", "--qps", 0, "--burst", 0)
    said = old.kubectl("get", "--raw", PODS, name="frank", check=False)
    assert "toomanyrequests" in said.lower().replace(" ", ""), said


def test_ten_thousand(world, old):
    """Each refusal that was decided is answered."""
    refuses(world, old, PODS, 10000, 50)
