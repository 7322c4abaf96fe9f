# SPDX-License-Identifier: GPL-2.0
"""Requests are charged inside a Go server, and the connections of users who are over a limit are held (attach --inside hold)."""
import json
import subprocess
import time

import pytest

from lib.inside import attach, of_limit, program
from lib.process import end, eventually

PATH = "/get/dev/pods"
ALICE, BOB = "127.0.0.1", "127.0.0.7"  # the addresses they come from


class Client:
    """Asks n times, and may be waited for. users: in turns."""

    def __init__(self, world, server, *users, n, source=ALICE, **options):
        words = [word for name, value in options.items() for word in (f"-{name}", str(value))]
        command = server.place.client_ns.command(
            program("client"), "-from", source, "-header", "X-User=" + "|".join(users), "-n", str(n), *words,
            f"https://{server.address}{PATH}")
        self.began = time.monotonic()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        world.at_end(self.close)

    def counts(self):
        """Answers by status, and how long they took."""
        counts = json.loads(self.process.communicate(timeout=120)[0])
        return counts, time.monotonic() - self.began

    def close(self):
        if self.process.poll() is None:
            end(self.process)


@pytest.fixture
def held(world, serve):
    def start(qps, burst, *options):
        server = serve("apiserver")
        attach(world, server, mode="hold", options=options)
        world.weir("limit", "set", "user", "--qps", qps, "--burst", burst)
        return server
    return start


def packets(world, reason):
    return world.weir.metrics()["weir_packets_total"].get((reason, "web"), 0)


def owed(world):
    return world.weir.server()["seen_inside"].get("owed", 0)


@pytest.mark.parametrize("streams", [1, 4])
def test_a_user_gets_the_limit(world, held, streams):
    """All is answered, and no sooner than the limit allows, but for the flight that is on its way when the tokens end."""
    server = held(5, 5)
    assert world.weir.server()["inside"]["text"].startswith("hold (apiserver, go1.")
    counts, took = Client(world, server, "alice", n=60, streams=streams).counts()
    assert counts == {"200": 60, "connections": 1}
    assert took >= (60 - 5 - streams) / 5
    status = world.weir.server()
    assert status["seen_inside"]["seen"] == status["passed"] == 60
    assert (status["shed"], status["dry_run_shed"]) == (0, 0)
    assert owed(world) >= 60 - 5 - 5 * took
    assert packets(world, "held_record") > 0
    assert of_limit(world, "user", "admitted") == 60


def test_others_are_not_held(world, held):
    """Alice is in debt for long; who comes from another address is answered at once, and on new connections as well."""
    server = held("0.02", 1, "--hold-max", "25")
    alice = Client(world, server, "alice", n=9)
    eventually(lambda: owed(world) == 1, "alice is in debt")
    for _ in range(3):
        assert Client(world, server, "bob", n=1, source=BOB).counts()[0] == {"200": 1, "connections": 1}
    assert alice.process.poll() is None
