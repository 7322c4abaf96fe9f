# SPDX-License-Identifier: GPL-2.0
"""`--inside answer --write-memory` on an API server of k8s.io/apiserver 0.36: `Handle` has the func value on the stack."""

import pytest

from answering import REFUSALS, by_memory, looked_into, refuses, shares_a_connection
from modern import DEFINITIONS, modern_server

pytestmark = by_memory


@pytest.fixture(scope="module")
def modern(cluster):
    with modern_server(cluster, "alice", "carol", "dave", "judy", GOGC="5") as server:
        yield server


@pytest.fixture(scope="module")
def world(modern, tmp_path_factory, bpffs):
    with looked_into(modern, tmp_path_factory.mktemp("world"), bpffs, "--write-memory") as world:
        yield world


def test_one_user(world, modern):
    assert world.weir.server("kube")["inside"]["text"].startswith("answer by memory")
    refuses(world, modern, DEFINITIONS, 60, 1)


def test_one_connection(world, modern):
    shares_a_connection(world, modern, DEFINITIONS)


def test_very_many(world, modern):
    """Each refusal that was decided is answered."""
    refuses(world, modern, DEFINITIONS, REFUSALS, 50, "judy")
