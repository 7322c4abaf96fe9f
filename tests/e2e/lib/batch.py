# SPDX-License-Identifier: GPL-2.0
"""Segments that a device hands to the kernel in one batch: all of them pass the programs at tc before the first meets a socket."""
import contextlib
import os
from pathlib import Path

THREADED = "mount -t sysfs sysfs /sys && echo 1 > /sys/class/net/eth0/threaded"


def pollers():
    """The kernel's threads that poll devices of this name."""
    found = set()
    for name in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if name.read_text().startswith("napi/eth0-"):
                found.add(int(name.parent.name))
    return found


class Batches:
    """The server's end of a veth. What is sent within `batch()` comes as one: its poller has no CPU before the sender is done."""

    def __init__(self, place):
        before = pollers()
        # Or the veth would not be polled.
        place.server_ns.run("ethtool", "-K", "eth0", "gro", "on")
        place.client_ns.run("ethtool", "-K", "eth0", "tso", "off")
        place.server_ns.run("unshare", "--mount", "sh", "-c", THREADED)
        self.cpu = min(os.sched_getaffinity(0))
        self.pollers = pollers() - before
        assert self.pollers
        for pid in self.pollers:
            os.sched_setaffinity(pid, {self.cpu})

    @contextlib.contextmanager
    def batch(self):
        cpus = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {self.cpu})
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        try:
            yield
        finally:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            os.sched_setaffinity(0, cpus)
