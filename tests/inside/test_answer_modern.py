# SPDX-License-Identifier: GPL-2.0
"""`--inside answer` on an API server of k8s.io/apiserver 0.36."""
import pytest

from lib.process import eventually

from answering import REFUSALS, executing, looked_into, refuses, shares_a_connection
from modern import DEFINITIONS, modern_server
from watching import limits_watches

USERS = "alice", "carol", "dave", "grace", "judy"


@pytest.fixture(scope="module", params=[True, False], ids=["fair", "not-fair"])
def fair(request):
    """Whether the server has API Priority and Fairness."""
    return request.param


@pytest.fixture(scope="module")
def modern(cluster, fair):
    with modern_server(cluster, *USERS, options=[f"--enable-priority-and-fairness={str(fair).lower()}"], GOGC="5") as server:
        yield server


@pytest.fixture(scope="module")
def world(modern, tmp_path_factory, bpffs):
    with looked_into(modern, tmp_path_factory.mktemp("world"), bpffs) as world:
        yield world


def test_one_user(world, modern, fair):
    refuses(world, modern, DEFINITIONS, 60, 1, counts_itself=fair)


def test_one_connection(world, modern):
    shares_a_connection(world, modern, DEFINITIONS)


def test_watches(world, modern):
    limits_watches(world, modern, DEFINITIONS, refuses=True)
    eventually(lambda: executing(modern) == 0, "the server's own seats are free")


def test_ten_thousand(world, modern, fair):
    """Each refusal that was decided is answered, while stacks move and goroutines are preempted wherever they can be."""
    refuses(world, modern, DEFINITIONS, REFUSALS, 50, "judy", counts_itself=fair)
