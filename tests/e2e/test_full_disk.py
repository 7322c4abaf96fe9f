# SPDX-License-Identifier: GPL-2.0
"""On a full disk nothing is changed, but what is to be turned off is off all the same, also for agents that come later."""
import errno
import os

import pytest

from lib.common import Common
from lib.process import eventually, run
from lib.worlds import RUN

pytestmark = pytest.mark.together


class Disk:
    """A small one for the state directory."""

    def __init__(self, directory):
        self.directory, self.filler = directory, directory / "filler"
        directory.mkdir(exist_ok=True)
        if not os.path.ismount(directory):
            run("mount", "-t", "tmpfs", "-o", "size=256k", "weir-test", directory)

    def fill(self):
        with open(self.filler, "wb", buffering=0) as file:
            with pytest.raises(OSError) as full:
                while True:
                    file.write(b"x" * 1024)
        assert full.value.errno == errno.ENOSPC

    def empty(self):
        self.filler.unlink()

    def end(self):
        run("umount", self.directory)
        self.directory.rmdir()


@pytest.fixture(scope="module")
def commons(tmp_path_factory, bpffs):
    """An agent whose state directory is such a disk."""
    directory = tmp_path_factory.mktemp("disk")
    disk = Disk(directory / "state")
    common = Common(f"weir-disk-{RUN}", directory, bpffs, ())
    yield lambda _options: common
    common.end()
    disk.end()


@pytest.fixture
def disk(world):
    common = os.path.ismount(world.weir.state_dir)
    disk = Disk(world.weir.state_dir)
    yield disk
    # The world's end comes later, and wants a state directory that is not full.
    disk.filler.unlink(missing_ok=True)
    if not common:
        world.at_end(disk.end)


@pytest.fixture
def site(world, disk):
    site = world.site()
    site.attach()
    site.limit("user", "noisy", burst=1)
    assert site.client("noisy").drive(2) == [200, 429]
    disk.fill()
    return site


def again(site):
    site.weir.kill()
    site.weir.start()


def warned(weir, *words):
    done = weir.run(*words)
    assert done.returncode == 0, done.stderr
    assert "weir: warning: it is off, but this could not be saved: " in done.stderr
    assert "No space left on device" in done.stderr and done.stderr.count("\n") == 1
    return done.stdout


def unlimited(site):
    return site.client("noisy").drive(3) == [200] * 3


def test_pause(site, disk):
    assert warned(site.weir, "pause") == 'server "web" is paused\n'
    assert unlimited(site)
    again(site)
    assert site.status()["mode"] == "paused" and unlimited(site)
    assert "No space left on device" in site.weir.refused("resume")
    assert unlimited(site)
    disk.empty()
    site.weir("resume")
    assert site.client("noisy").drive(1) == [429]
    again(site)
    assert site.client("noisy").drive(1) == [429]
    assert not list(site.world.pins.glob("unsaved-*"))


def test_detach(site, disk):
    assert "is detached" in warned(site.weir, "detach", "web", "--force")
    assert unlimited(site)
    again(site)
    assert site.weir.servers() == [] and unlimited(site)
    assert 'server "web" is ended: an earlier agent could not save that' in site.weir.log()
    disk.empty()
    site.attach()
    assert not list(site.world.pins.glob("unsaved-*"))


def test_draining(world, disk):
    """A translated connection goes on, limited by nobody."""
    site = world.site()
    site.attach()
    site.limit("user", "noisy", burst=1)
    noisy = site.client("noisy")
    assert noisy.drive(2) == [200, 429]
    disk.fill()
    assert "is draining" in warned(site.weir, "detach", "web")
    again(site)
    assert site.status()["mode"] == "draining"
    assert noisy.drive(3) == [200] * 3
    disk.empty()


def test_saved_when_it_can_be(site, disk):
    warned(site.weir, "pause")
    disk.empty()
    eventually(lambda: "what could not be saved before is saved" in site.weir.log(), "the agent has tried again")
    assert not list(site.world.pins.glob("unsaved-*"))


def test_what_limits_is_refused(site):
    """And leaves no half file behind."""
    before = site.weir("export")
    assert "No space left on device" in site.weir.refused("limit", "set", "total", "--qps", 1, "--burst", 1)
    assert site.weir("export") == before
    assert not (site.weir.state_dir / "state.json.new").exists()


def test_what_goes_is_refused(site, disk):
    """What a command could not save is not done, now or by the next agent: a limit that is to go stays."""
    disk.empty()
    site.limit("user", burst=5)
    site.weir("max-in-flight", "--read-only", 1, "--mutating", 1)
    before = site.weir("export")
    disk.fill()
    for words in (("limit", "delete", "user", "noisy"), ("limit", "delete", "user"),
                  ("limit", "delete", "read-only-in-flight"), ("max-in-flight", "--read-only", 0)):
        assert "No space left on device" in site.weir.refused(*words)
        assert site.weir("export") == before
    assert site.client("noisy").drive(1) == [429]
    again(site)
    assert site.weir("export") == before
    assert site.client("noisy").drive(1) == [429]
    disk.empty()
    site.weir("limit", "delete", "user", "noisy")
    assert "noisy" not in site.weir("export")


def test_start(site, disk):
    """As after a crash or a reboot: what was saved is limited, and is saved where it was not yet when there is room."""
    site.weir.kill()
    site.weir.start("off", "--persist")
    assert site.client("noisy").drive(1) == [429]
    assert "what is in force could not be saved: cannot write" in site.weir.log()
    persisted = site.weir.state_dir.parent / "persist/state.json"
    assert not persisted.exists()
    disk.empty()
    eventually(persisted.exists, "the agent has tried again")
    assert persisted.read_text() == (site.weir.state_dir / "state.json").read_text()


def test_a_limit_on_the_size_of_files(world):
    """It is as a full disk: the agent lives on."""
    site = world.site()
    site.attach()
    size = (site.weir.state_dir / "state.json").stat().st_size
    run("prlimit", "--pid", site.weir.process.pid, f"--fsize={size}:")
    for n in range(3):
        assert "File too large" in site.weir.refused("limit", "set", f"more-{n}", "--key", "user", "--qps", 1, "--burst", 1)
    assert "File too large" in site.weir.run("pause").stderr
    assert site.status()["mode"] == "paused"
    run("prlimit", "--pid", site.weir.process.pid, "--fsize=unlimited:")
    site.weir("resume")


@pytest.mark.alone
def test_uninstall(site, world):
    warned(site.weir, "pause")
    site.weir("uninstall", "--force")
    assert not world.pins.exists() and unlimited(site)
    world.weir.log_path.unlink()


@pytest.mark.alone
def test_uninstall_of_what_is_read_only(site, world, disk):
    """A file system that has become read-only keeps nothing in force; what stays on it is named."""
    disk.empty()
    site.weir.kill()
    run("mount", "-o", "remount,ro", site.weir.state_dir)
    done = site.weir.run("uninstall", "--force")
    run("mount", "-o", "remount,rw", site.weir.state_dir)
    assert done.returncode == 0, done.stderr
    assert f"weir: warning: {site.weir.state_dir}/state.json stays: Read-only file system" in done.stderr
    assert not world.pins.exists() and unlimited(site)
    world.weir.log_path.unlink()
