# SPDX-License-Identifier: GPL-2.0
"""`--inside answer` on an API server of k8s.io/apiserver 0.36."""
import pytest

from lib.process import eventually

from answering import executing, looked_into, refuses, shares_a_connection
from kube import modern_server
from watching import limits_watches

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def modern(cluster):
    with modern_server(cluster, "alice", "carol", "dave", "grace", "judy") as server:
        yield server


@pytest.fixture(scope="module")
def world(modern, tmp_path_factory, bpffs):
    with looked_into(modern, tmp_path_factory.mktemp("world"), bpffs) as world:
        yield world


def test_one_user(world, modern):
    refuses(world, modern, DEFINITIONS, 60, 1)


def test_one_connection(world, modern):
    shares_a_connection(world, modern, DEFINITIONS)


def test_watches(world, modern):
    limits_watches(world, modern, DEFINITIONS, refuses=True)
    eventually(lambda: executing(modern) == 0, "the server's own seats are free")


def test_ten_thousand(world, modern):
    refuses(world, modern, DEFINITIONS, 10000, 50, "judy")
