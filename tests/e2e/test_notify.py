# SPDX-License-Identifier: GPL-2.0
"""What the agent tells systemd: a socket in place of it."""
import os
import signal
import socket

import pytest

from lib.process import PATIENCE_S, eventually


@pytest.fixture
def manager(world, tmp_path, monkeypatch):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        path = tmp_path / "notify"
        manager.bind(str(path))
        manager.settimeout(PATIENCE_S)
        monkeypatch.setenv("NOTIFY_SOCKET", str(path))
        yield manager


def test_ready_and_stopping(world, manager):
    """Without a watchdog nothing is said in between."""
    world.weir.start()
    world.weir.stop()
    assert [manager.recv(64) for _ in range(2)] == [b"READY=1", b"STOPPING=1"]
    world.weir.start()


def test_a_watchdog(world, manager, monkeypatch):
    """It hears of an event loop that turns, and nothing of one that stands still."""
    monkeypatch.setenv("WATCHDOG_USEC", "100000")
    world.weir.start()
    said = [manager.recv(64) for _ in range(4)]
    assert said.count(b"WATCHDOG=1") >= 3
    os.kill(world.weir.process.pid, signal.SIGSTOP)
    manager.setblocking(False)

    def drained():
        try:
            manager.recv(64)
        except BlockingIOError:
            return True

    eventually(drained, "what was under way has come")
    manager.settimeout(0.5)
    with pytest.raises(TimeoutError):
        manager.recv(64)
    os.kill(world.weir.process.pid, signal.SIGCONT)
    manager.settimeout(PATIENCE_S)
    assert manager.recv(64) == b"WATCHDOG=1"


def test_another_ones_watchdog(world, manager, monkeypatch):
    monkeypatch.setenv("WATCHDOG_USEC", "1000")
    monkeypatch.setenv("WATCHDOG_PID", "1")
    world.weir.start()
    world.weir.stop()
    assert [manager.recv(64) for _ in range(2)] == [b"READY=1", b"STOPPING=1"]
    world.weir.start()
