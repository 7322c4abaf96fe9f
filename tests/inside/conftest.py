# SPDX-License-Identifier: GPL-2.0
import os
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

pytest.register_assert_rewrite("seeing", "answering", "watching")

from kube import Kube  # noqa: E402
from lib.weir import BINARY  # noqa: E402
from lib.worlds import bpffs, world  # noqa: E402, F401 (fixtures)


def pytest_configure():
    """Who is told to end cleans up behind himself, as after ^C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture
def usual_agent(world):
    """Behind the test, whatever comes of it."""
    yield
    world.weir.binary = BINARY
    world.weir.start()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """etcd, without an API server."""
    kube = Kube(f"weir-kube-{os.getpid()}", tmp_path_factory.mktemp("kube"))
    try:
        kube.start_etcd()
        yield kube
        assert not kube.namespace.leftovers()
    finally:
        kube.end()
