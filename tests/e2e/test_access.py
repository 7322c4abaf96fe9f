# SPDX-License-Identifier: GPL-2.0
"""Who may say what to the agent: groups, other users, and connections that say nothing."""
import os
import shutil
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from lib import weir
from lib.weir import Weir

OPS, WATCH, STRANGER = 4241, 4242, 65534


class PublicWeir(Weir):
    """An agent whose socket, and a binary that, every user gets to, as far as the agent itself lets him."""

    def __init__(self, world, directory):
        super().__init__(directory, world.pins)
        self.binary = directory / "weir"
        shutil.copy(weir.BINARY, self.binary)

    def by(self, group, *words):
        """A command of a user who is in this group, too: its status, and what it said."""
        return self.run(*words, user=STRANGER, group=STRANGER, extra_groups=[group])

    def command(self, *words):
        return [str(word) for word in (self.binary, *words)]


@pytest.fixture
def public(world):
    directory = Path(tempfile.mkdtemp(prefix="weir-test-"))
    world.at_end(shutil.rmtree, directory)
    directory.chmod(0o755)
    world.weir = PublicWeir(world, directory)
    return world.weir


def start(public, world, *options):
    public.start("off", *options)
    site = world.site()
    site.attach()
    site.limit("user", burst=1)
    return site


READS = (["status"], ["limit", "list"], ["metrics"], ["export"], ["explain", "GET", "/"])
CHANGES = (["limit", "set", "user", "--qps", "1", "--burst", "1"], ["limit", "delete", "user"], ["pause"], ["resume"],
           ["reload"], ["detach", "web", "--force"], ["max-in-flight", "--mutating", "5"], ["trace", "--count", "1"],
           ["attach", "other", "--port", "1"])


def test_monitors_only_read(public, world):
    site = start(public, world, "--monitor-group", WATCH)
    limits, mode = public.json("limit", "list"), stat.S_IMODE((public.state_dir / "weir.sock").stat().st_mode)
    assert mode == 0o660
    for words in READS:
        done = public.by(WATCH, *words)
        assert (done.returncode, done.stderr) == (0, ""), words
    for words in CHANGES:
        done = public.by(WATCH, *words)
        assert (done.returncode, done.stdout) == (1, ""), words
        assert "is for root: you may only read" in done.stderr, done.stderr
    assert public.json("limit", "list") == limits
    assert public.metrics()["weir_control_refused_total"]["read_only",] == len(CHANGES)
    assert public.by(STRANGER, "status").returncode == 1
    assert "permission denied" in public.by(STRANGER, "status").stderr
    assert site.client("a").drive(2) == [200, 429]


def test_monitors_may_diff_and_not_apply(public, world):
    start(public, world, "--monitor-group", WATCH)
    exported = public("export")
    policy = public.state_dir.parent / "policy.yaml"
    policy.write_text(exported)
    policy.chmod(0o644)
    assert public.by(WATCH, "diff", "-f", policy).returncode == 0
    done = public.by(WATCH, "apply", "-f", policy)
    assert done.returncode == 1 and "you may only read" in done.stderr


def test_two_groups(public, world):
    start(public, world, "--admin-group", OPS, "--monitor-group", WATCH)
    assert public.by(OPS, "pause").returncode == 0
    assert public.server()["mode"] == "paused"
    assert public.by(OPS, "resume").returncode == 0
    done = public.by(WATCH, "pause")
    assert f"is for root and members of the group {OPS}: you may only read" in done.stderr
    done = public.by(STRANGER, "status")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"user {STRANGER} may not talk to this agent" in done.stderr
    assert str(OPS) in done.stderr and str(WATCH) in done.stderr
    assert public.metrics()["weir_control_refused_total"]["not_allowed",] == 1
    # The rest of the directory is root's.
    for path in public.state_dir.iterdir():
        assert path.name == "weir.sock" or stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert stat.S_IMODE(public.state_dir.stat().st_mode) & 0o066 == 0


def test_unknown_group(world):
    line = world.weir.refused("agent", "--monitor-group", "no-such-group", status=2)
    assert '--monitor-group: there is no group "no-such-group"' in line


def test_silent_connections(site):
    """A thousand and a half of root's own: commands are taken, in the time that a command has."""
    silent = []
    try:
        for _ in range(1500):
            silent.append(socket.socket(socket.AF_UNIX))
            silent[-1].connect(str(site.weir.state_dir / "weir.sock"))
        assert site.weir.servers()
    finally:
        for connection in silent:
            connection.close()
    assert os.path.exists(site.weir.state_dir / "weir.sock")
