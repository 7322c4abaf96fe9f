# SPDX-License-Identifier: GPL-2.0
"""
The world that a test gets. Tests of modules with `pytestmark = pytest.mark.together` share an agent and places, one after the
other; a test marked `alone` has its own, and behind one marked `alters` the devices are made anew. `together` may have options:
all tests with these share an agent that has them.
"""
import contextlib
import re
import secrets

import pytest

from lib.common import Common, Lent
from lib.process import run
from lib.weir import BINARY
from lib.world import World

# Names this run's places. A process's number comes again in a new process namespace, and a run that was killed leaves its places.
RUN = secrets.token_hex(3)


@pytest.fixture(scope="session")
def bpffs(tmp_path_factory):
    """A bpffs of these tests' own: whatever is mounted elsewhere may be another one's, and read by it."""
    private = tmp_path_factory.mktemp("bpffs")
    run("mount", "-t", "bpf", "bpf", private)
    yield private
    run("umount", private)


def slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60]


@pytest.fixture(scope="session")
def commons(tmp_path_factory, bpffs):
    """The common world of an agent with these options, made when it is first asked for."""
    made = {}
    endings = contextlib.ExitStack()  # all are ended, also where one leaves something

    def common(options):
        if options not in made:
            made[options] = Common(f"weir-common{len(made)}-{RUN}", tmp_path_factory.mktemp("common"), bpffs, options)
            endings.callback(made[options].end)
        return made[options]

    with endings:
        yield common


def shares(item):
    return item.get_closest_marker("together") and not item.get_closest_marker("alone")


def lent(request, name, tmp_path, bpffs):
    common = request.getfixturevalue("commons")(request.node.get_closest_marker("together").args)
    return Lent(name, tmp_path, bpffs, common, bool(request.node.get_closest_marker("alters")))


@pytest.fixture
def world(request, tmp_path, bpffs):
    assert BINARY.exists(), f"{BINARY} is not built"
    name = f"weir-{slug(request.node.name)}-{RUN}"
    world = lent(request, name, tmp_path, bpffs) if shares(request.node) else World(name, tmp_path, bpffs)
    yield world
    world.end()
