# SPDX-License-Identifier: GPL-2.0
"""`--inside see` on an API server of k8s.io/apiserver 0.36, made with Go 1.26."""
import pytest

from modern import DEFINITIONS, modern_server
from seeing import Compared, attach, by_user, many_streams


@pytest.fixture(scope="module")
def modern(cluster):
    with modern_server(cluster) as server:
        yield server


def test_modern_api_server(world, modern):
    attach(world, modern)
    assert "go1.26" in world.weir.server("kube")["inside"]["text"]
    compared = Compared(world, modern)
    assert modern.ask("admin", DEFINITIONS, 20)["200"] == 20
    assert modern.ask("alice", DEFINITIONS, 10)["403"] == 10
    assert modern.ask("admin", f"{DEFINITIONS}/none", 5)["404"] == 5
    assert modern.ask_for("dave", DEFINITIONS, 7, groups=["system:masters"])["200"] == 7
    assert by_user(compared.end()) == {"admin": 25, "alice": 10, "dave": 7}


def test_many_streams_modern(world, modern):
    many_streams(world, modern, DEFINITIONS, resource="customresourcedefinitions")
