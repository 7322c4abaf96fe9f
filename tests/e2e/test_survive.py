# SPDX-License-Identifier: GPL-2.0
"""
The agent is killed again and again, and new ones take over: clients below their limits never notice, none gets past its
limit, nothing is counted twice or forgotten. (Agents of another build: test_upgrade.py)
"""
import os
import threading
import time

from lib.process import PATIENCE_S
from lib.weir import DECISIONS
from test_detach import Load

# WEIR_LONG=1: for a minute.
SECONDS = 60 if os.environ.get("WEIR_LONG") else 10
# How long an agent lives: killed while it begins, loads programs, takes over, or when it has just become ready.
READY = None
LIVES_S = (0.05, READY, 0.35, 0.65, READY, 0.2, 0.8, READY, 0.5)
RATE, BURST = 20, 10


class Steady:
    """A client that asks below its limit, and must never notice anything."""

    def __init__(self, site, user, every_s):
        self.client = site.client(user)
        self.every_s = every_s
        self.asked = 0
        self.failures = []
        self.longest_s = 0
        self.stopping = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while not self.stopping:
                began = time.monotonic()
                assert self.client.get(f"/steady/{self.asked}?size={self.asked % 5 * 4000 + 40}") == 200
                self.asked += 1
                self.longest_s = max(self.longest_s, time.monotonic() - began)
                time.sleep(self.every_s)
        except BaseException as failure:
            self.failures.append((self.asked, failure))

    def stop(self):
        self.stopping = True
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive() and not self.failures, self.failures


def counted(site):
    """What the kernel has counted, as the agent tells it."""
    status = site.status()
    return [status[decision] for decision in DECISIONS]


def kill_every_second(site, seconds):
    """
    Every second, or as soon as the agent is ready where that takes longer. Returns how many were killed before they were
    ready and how many behind that, and what the latter have told.
    """
    weir, told, end = site.weir, [], time.monotonic() + seconds
    killed = 0
    while time.monotonic() < end:
        began, life_s = time.monotonic(), LIVES_S[killed % len(LIVES_S)]
        if life_s is READY:
            weir.start()
            told.append(counted(site))
        else:
            weir.launch()
            time.sleep(life_s)
            assert weir.running(), weir.log()
        weir.kill()
        killed += 1
        time.sleep(max(0, began + 1 - time.monotonic()))
    return killed - len(told), told


def test_killed_every_second(world):
    site = world.site(world.veth())
    site.attach()
    site.weir("limit", "set", "user", "noisy", "--qps", RATE, "--burst", BURST)
    site.weir("limit", "set", "user", "steady", "--qps", 400, "--burst", 400)
    began = time.monotonic()
    load, steady = Load(site, ["noisy"] * 2), Steady(site, "steady", 0.01)
    load.more(20)
    site.weir.kill()
    unready, told = kill_every_second(site, SECONDS)
    steady.stop()
    load.stop()
    lasted_s = time.monotonic() - began
    passed, shed = load.count(200), load.count(429)
    print(f"{unready} agents killed before they were ready, {len(told)} behind that; {steady.asked} requests below the "
          f"limit, the longest took {steady.longest_s:.3f} s; above it {passed} of {passed + shed} passed in "
          f"{lasted_s:.1f} s, where {BURST} + {RATE}/s are {BURST + RATE * lasted_s:.0f}")
    assert unready and told
    for earlier, later in zip(told, told[1:]):
        assert all(a <= b for a, b in zip(earlier, later)), (earlier, later)
    assert BURST < passed <= BURST + RATE * lasted_s
    site.weir.start()
    site.check(passed=passed + steady.asked, shed=shed)
    assert len(site.server.connections) == 3
