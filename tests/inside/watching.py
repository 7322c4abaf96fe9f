# SPDX-License-Identifier: GPL-2.0
"""Watches that are open: a limit on requests in flight counts them, and each place comes back when its watch ends."""
import contextlib
import subprocess

from lib.process import end, eventually
from seeing import attach


class Watch:
    """A watch on a connection of its own, until it is closed."""

    def __init__(self, world, kube, name, path):
        kube.pki.of(name)
        self.process = subprocess.Popen(
            kube.namespace.command("curl", "-skN", "-w", "%{http_code}", *kube.curl(name), kube.url(f"{path}?watch=1")),
            text=True, stdout=subprocess.PIPE)
        world.at_end(self.close)

    def answer(self):
        """The status, when the server has ended it."""
        return self.process.communicate(timeout=600)[0][-3:]

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            end(self.process)


def of_limit(world, name):
    return next(limit for limit in world.weir.server("kube")["limits"] if limit["limit"] == name)


def in_flight(world):
    return of_limit(world, "watches")["in_flight"]


def limits_watches(world, kube, lane, path):
    """Two watches for each user. Where refusals are decided only, the third is open, and has no place."""
    attach(world, kube, lane)
    refuses = lane == "answer"
    kube.allow("grace")
    world.weir("limit", "set", "watches", "--key", "user", "--in-flight", 2, "--verb", "watch", "--for-user", "grace")
    before = world.weir.server("kube")
    open_ones = [Watch(world, kube, "grace", path) for _ in range(2)]
    eventually(lambda: in_flight(world) == 2, "both are open")
    third = Watch(world, kube, "grace", path)
    what = "shed" if refuses else "dry_run_shed"
    eventually(lambda: world.weir.server("kube")[what] == before[what] + 1, "the third is one too many")
    assert not refuses or third.answer() == "429"
    assert kube.ask("grace", path, 3)["200"] == 3
    assert in_flight(world) == 2
    open_ones[0].close()
    eventually(lambda: in_flight(world) == 1, "a place is free")
    fourth = Watch(world, kube, "grace", path)
    eventually(lambda: in_flight(world) == 2, "it is another one's")
    for watch in third, fourth, open_ones[1]:
        watch.close()
    eventually(lambda: in_flight(world) == 0, "all places are free")
    assert not world.weir.server("kube")["seen_inside"].keys() - {"seen", "answered", "rejected"}
