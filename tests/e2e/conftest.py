# SPDX-License-Identifier: GPL-2.0
import collections
import signal

import pytest

from lib.inside import serve  # noqa: F401 (fixture)
from lib.world import World
from lib.worlds import RUN, bpffs, commons, shares, world  # noqa: F401 (fixtures)

OWN_AGENT = 5  # times as much as another test
LONG = 50


def pytest_configure(config):
    """Who is told to end cleans up behind himself, as after ^C."""
    config.addinivalue_line("markers", "together: the module's tests share an agent and places with others")
    config.addinivalue_line("markers", "alone: not this test")
    config.addinivalue_line("markers", "alters: the test changes devices of the place it shares: the next one gets new ones")
    config.addinivalue_line("markers", "long: the test takes as long as dozens of others")
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """
    A drain takes a minute, TIME-WAIT and all: it begins before everything else, and is looked at last. A module is one worker's:
    those with the most to do come first, so that no long one is left for the end.
    """
    work = collections.Counter()
    for item in items:
        own_agent = "world" in item.fixturenames and not shares(item)
        work[item.path] += LONG if item.get_closest_marker("long") else OWN_AGENT if own_agent else 1
    items.sort(key=lambda item: ({"test_drain_begins": 0, "test_drain_ends": 2}.get(item.name, 1), -work[item.path]))


@pytest.fixture(scope="session")
def draining(tmp_path_factory, bpffs):
    """A site that was detached while connections of it were translated."""
    world = World(f"weir-drain-{RUN}", tmp_path_factory.mktemp("drain"), bpffs)
    try:
        yield drain(world.site())
    finally:
        world.end()


def drain(site):
    site.attach()
    site.limit("user", burst=1)
    client, other = site.client(), site.client()
    assert client.drive(3) == [200, 429, 429]
    assert other.get("/refused") == 429
    assert "draining: 2 translated" in site.weir("detach", "web")
    assert client.drive(5) == [200] * 5
    return site


@pytest.fixture
def site(world):
    """An echo server on loopback, attached, without limits."""
    site = world.site()
    site.attach()
    return site
