# SPDX-License-Identifier: GPL-2.0
"""Segments that a device hands to the kernel in one batch: all of them pass the programs at tc before the first meets a socket."""
import contextlib
import os
import subprocess
import time
from pathlib import Path

import pytest

THREADED = "mount -t sysfs sysfs /sys && echo 1 > /sys/class/net/eth0/threaded"
BUSY = ("setpriv", "--pdeathsig", "KILL", "chrt", "--fifo", "1", "sh", "-c", "while :; do :; done")


def begin_busy(cpu):
    process = subprocess.Popen(["taskset", "--cpu-list", str(cpu), *BUSY], stderr=subprocess.DEVNULL)
    while Path(f"/proc/{process.pid}/comm").read_text() != "sh\n":
        if process.poll() is not None:
            pytest.skip(f"nothing may take CPU {cpu} for itself")
        time.sleep(0.001)
    return process


@contextlib.contextmanager
def busy(cpu):
    """The CPU does nothing for anybody else, kernel threads included."""
    process = begin_busy(cpu)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def alone_on(cpu):
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.sched_setaffinity(0, cpus)


class Batches:
    """
    The server's end of a veth. What is sent within `batch()` comes as one: the thread of the kernel that polls the device has no CPU
    before the sender is done. Which thread that is need not be known: a process namespace hides it.
    """

    def __init__(self, place):
        # Or the veth would not be polled.
        place.server_ns.run("ethtool", "-K", "eth0", "gro", "on")
        place.client_ns.run("ethtool", "-K", "eth0", "tso", "off")
        place.server_ns.run("unshare", "--mount", "sh", "-c", THREADED)

    @contextlib.contextmanager
    def batch(self):
        own, *others = sorted(os.sched_getaffinity(0)) + sorted(set(range(os.cpu_count())) - os.sched_getaffinity(0))
        with contextlib.ExitStack() as stack:
            for cpu in others:
                stack.enter_context(busy(cpu))
            stack.enter_context(alone_on(own))
            yield
