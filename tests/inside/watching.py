# SPDX-License-Identifier: GPL-2.0
"""Watches that are open: a limit on requests in flight counts them, and each seat comes back when its watch ends."""
import contextlib
import itertools
import subprocess

from lib.process import end, eventually
from seeing import audited

NUMBERS = itertools.count()


class Watch:
    """A watch on a connection of its own, until it is closed."""

    def __init__(self, world, kube, name, path):
        kube.pki.of(name)
        self.headers = kube.directory / f"watch-{next(NUMBERS)}"
        self.process = subprocess.Popen(
            kube.namespace.command("curl", "-skN", "-D", self.headers, "-w", "%{http_code}", *kube.curl(name),
                                   kube.url(f"{path}?watch=1")),
            text=True, stdout=subprocess.PIPE)
        world.at_end(self.close)

    def answer(self):
        """The status, when the server has ended it."""
        return self.process.communicate(timeout=600)[0][-3:]

    def is_open(self):
        return self.process.poll() is None and self.headers.exists() and " 200" in self.headers.read_text()

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            end(self.process)


def of_limit(world, name):
    return next(limit for limit in world.weir.server("kube")["limits"] if limit["limit"] == name)


def in_flight(world):
    return of_limit(world, "watches")["in_flight"]


def limits_watches(world, kube, path, refuses):
    """Two watches for each user. Where refusals are decided only, the third is open, and has no seat."""
    kube.allow("grace")
    world.weir("limit", "set", "watches", "--key", "user", "--in-flight", 2, "--verb", "watch", "--for-user", "grace")
    before = world.weir.server("kube")
    mark = kube.audit_mark()
    open_ones = [Watch(world, kube, "grace", path) for _ in range(2)]
    eventually(lambda: in_flight(world) == 2, "both are open")
    third = Watch(world, kube, "grace", path)
    what = "shed" if refuses else "dry_run_shed"
    eventually(lambda: world.weir.server("kube")[what] == before[what] + 1, "the third is one too many")
    if refuses:
        assert third.answer() == "429"
        eventually(lambda: audited(kube, mark, "grace")["429"] == 1, "the audit log has the same")
    other = Watch(world, kube, "admin", path)
    eventually(other.is_open, "another user's is open")
    assert kube.ask("grace", path, 3)["200"] == 3
    assert in_flight(world) == 2
    for watch in open_ones:
        eventually(watch.is_open, "the others go on")
    open_ones[0].close()
    eventually(lambda: in_flight(world) == 1, "a seat is free")
    fourth = Watch(world, kube, "grace", path)
    eventually(lambda: in_flight(world) == 2, "it is another one's")
    for watch in third, fourth, other, open_ones[1]:
        watch.close()
    eventually(lambda: in_flight(world) == 0, "all seats are free")
    assert not world.weir.server("kube")["seen_inside"].keys() - {"seen", "answered", "rejected"}
