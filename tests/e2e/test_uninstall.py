# SPDX-License-Identifier: GPL-2.0
"""weir uninstall: whatever was in force, and whoever was there to end it, nothing of weir is left."""
import json
import os
import shutil
import subprocess
import time

import pytest

from lib import kernel
from lib.process import PATIENCE_S, eventually, run
from lib.weir import Weir


class Traces:
    """All that there is in the kernel and in the file system, before weir came and after it went."""

    def __init__(self, world, *namespaces):
        self.world, self.namespaces = world, namespaces
        self.before = self.look()

    def look(self):
        inside = [(namespace.run("tc", "qdisc", "show"), namespace.run("ip", "-o", "link").count("\n"),
                   namespace.leftovers()) for namespace in self.namespaces]
        files = sorted(map(str, [*self.world.pins.rglob("*"), *self.world.weir.state_dir.rglob("*")]))
        return {"inside": inside, "files": files, "directories": [self.world.pins.exists(),
                                                                   self.world.weir.state_dir.exists()]}

    def gone(self, objects):
        """objects: of the kernel, that must not be there any more."""
        assert self.look() == self.before
        kernel.wait_until_gone(objects)


def agentless(world):
    """There is no agent to be ended by the test's own end."""
    world.weir.log_path.unlink()


def assert_uninstalled(world, traces, objects, quiet):
    """Nothing is left, and whose connection was not translated has not noticed."""
    traces.gone(objects)
    assert quiet.drive(3) == [200] * 3
    agentless(world)


@pytest.fixture
def attached(world):
    """A server on both kinds of device, over its limit, with one connection that is translated and one that is not."""
    place = world.veth()
    traces = Traces(world, place.server_ns, place.client_ns)
    site = world.site(place)
    site.attach()
    site.limit("user", "noisy", burst=1)
    noisy, quiet = site.client("noisy"), site.client("quiet")
    assert noisy.drive(3) == [200, 429, 429]
    assert quiet.drive(2) == [200, 200]
    return site, traces, noisy, quiet


@pytest.mark.parametrize("how", ["running", "killed"])
def test_force(world, attached, how):
    site, traces, noisy, quiet = attached
    objects = kernel.pinned(world.pins)
    pid = site.weir.process.pid if how == "running" else None
    if how == "killed":
        site.weir.kill()
    said = site.weir.json("uninstall", "--force")
    assert said["agent"] == pid
    assert [(place["reset"], place["entered"]) for place in said["namespaces"]] == [(1, True)]
    if pid:
        assert site.weir.process.wait(PATIENCE_S) == 0
    traces.gone(objects)
    with pytest.raises(ConnectionError):
        noisy.send(noisy.head("/more"))
        noisy.read()
    assert quiet.drive(3) == [200] * 3
    assert site.client("noisy").drive(3) == [200] * 3
    agentless(world)


def test_waits_for_translated_connections(world, attached):
    """They go on meanwhile, unlimited, and it says what it waits for."""
    site, traces, noisy, quiet = attached
    objects = kernel.pinned(world.pins)
    process = subprocess.Popen(site.weir.command("uninstall"), env=site.weir.environment(), text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    world.at_end(process.kill)
    assert "waiting until a minute after the end of 1 translated connection (--force resets it)" in process.stderr.readline()
    eventually(lambda: noisy.get("/meanwhile") == 200, "nothing is limited any more")
    assert noisy.drive(5) == [200] * 5
    assert quiet.drive(5) == [200] * 5
    assert process.poll() is None
    if os.environ.get("WEIR_LONG"):
        noisy.close()  # a minute later its numbers are forgotten
        out, _ = process.communicate(timeout=PATIENCE_S + 60)
        assert process.returncode == 0
        assert out.endswith("nothing of weir is in force any more\n")
    else:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
        assert noisy.get("/translated") == 200
        done = site.weir.run("uninstall", "--force-after", "1s")
        assert done.returncode == 0 and "1 connection was reset" in done.stdout
    assert_uninstalled(world, traces, objects, quiet)


def test_nothing_there(world):
    assert world.weir("uninstall") == "nothing of weir is in force\n"
    assert not world.weir.state_dir.exists()


def test_twice(world, attached):
    site, traces, _, _ = attached
    site.weir("uninstall", "--force")
    assert site.weir("uninstall") == "nothing of weir is in force\n"
    site.weir.start()
    assert site.weir.servers() == []
    site.attach()
    site.limit("user", burst=1)
    assert site.client().drive(2) == [200, 429]


def other_version(world):
    """The maps say that another weir made them."""
    (settings,) = world.pins.rglob("settings")
    value = json.loads(run("bpftool", "-j", "map", "lookup", "pinned", settings, "key", "0", "0", "0", "0"))["value"]
    value = [int(byte, 16) for byte in value]
    value[0] += 1
    run("bpftool", "map", "update", "pinned", settings, "key", "0", "0", "0", "0", "value", *value)


def test_pins_of_an_older_one(world, attached):
    """Maps are missing, others are not known: it goes by the names of what is pinned."""
    site, traces, _, quiet = attached
    objects = kernel.pinned(world.pins)
    site.weir.kill()
    other_version(world)
    (directory,) = world.pins.iterdir()
    (directory / "in_flight").unlink()
    (directory / "names").rename(directory / "nicknames")
    (directory / "prog-ingress").rename(directory / "prog-ingress-new")
    site.weir("uninstall", "--force")
    assert_uninstalled(world, traces, objects, quiet)


def test_namespace_is_gone(world, attached):
    site, _, _, _ = attached
    objects = kernel.pinned(world.pins)
    site.weir.stop()
    site.server.close()
    for namespace in list(world.namespaces):
        world.namespaces.remove(namespace)
        namespace.delete()
    said = site.weir("uninstall")
    assert "its network namespace could not be found" in said or "is removed\n" in said
    assert not world.pins.exists() and not site.weir.state_dir.exists()
    kernel.wait_until_gone(objects)
    agentless(world)


def test_others_are_left_alone(world, attached):
    """A clsact of somebody else's, and an agent with directories of its own."""
    site, _, _, _ = attached
    namespace = site.place.server_ns
    namespace.run("tc", "qdisc", "add", "dev", "lo", "clsact")
    other = Weir(world.directory / "other", world.pins.with_name(world.pins.name + "-other"))
    other.state_dir.parent.mkdir()
    other.start()
    try:
        assert other.run("attach", "api", "--port", 81, "--netns", site.place.client_ns.path).returncode == 0
        site.weir("uninstall", "--force")
        assert "clsact" in namespace.run("tc", "qdisc", "show", "dev", "lo")
        assert [server["mode"] for server in other.servers()] == ["limiting"]
        namespace.run("tc", "qdisc", "del", "dev", "lo", "clsact")
    finally:
        other("uninstall", "--force")
    assert not other.pins.exists() and not other.state_dir.exists()
    agentless(world)


def test_persisted_of_another_stays(world):
    """Also while that agent does not run; its own uninstall takes it."""
    other = Weir(world.directory / "other", world.pins.with_name(world.pins.name + "-other"))
    other.state_dir.parent.mkdir()
    persisted = world.directory / "persist"
    assert other.environment()["WEIR_PERSIST_DIR"] != str(persisted)
    other.environment = lambda: {**Weir.environment(other), "WEIR_PERSIST_DIR": str(persisted)}
    other.start("off", "--persist")
    other.stop()
    world.weir.start()
    assert world.weir.environment()["WEIR_PERSIST_DIR"] == str(persisted)
    world.weir("uninstall")
    assert (persisted / "state.json").exists()
    other("uninstall")
    assert not persisted.exists()
    agentless(world)


def test_second_agent_says_who_is_first(site):
    said = site.weir.refused("agent", "--metrics", "off")
    began = time.localtime((site.weir.state_dir / "lock").stat().st_mtime)
    assert f"another agent (pid {site.weir.process.pid}, since {time.strftime('%Y-%m-%d %H:%M:%S', began)}) runs on" in said


def test_not_root(world):
    if not shutil.which("setpriv"):
        pytest.skip("there is no setpriv")
    done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", *world.weir.command("uninstall")],
                          env={**os.environ, **world.weir.environment()}, text=True, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "weir: uninstall needs root\n")


def test_usage(world):
    assert "unexpected argument" in world.weir.run("uninstall", "web").stderr
    assert world.weir.run("uninstall", "web").returncode == 2


def test_a_lost_state(world, attached):
    """What is in force without a server of the state is said to be, until it is ended."""
    site, _, noisy, _ = attached
    site.weir.kill()
    (site.weir.state_dir / "state.json").unlink()
    site.weir.start()
    pins = next(world.pins.glob("net-*"))
    assert site.weir.servers() == [] and noisy.drive(1) == [429]
    assert site.weir.json("status")["agent"]["leftovers"] == [str(pins)]
    assert f"{pins}: is in force, and this agent does not know its servers" in site.weir("status")
    assert f"{pins} is in force, and its servers are not in the state" in site.weir.log()
    site.weir("uninstall", "--force")
    site.weir.start()
    assert site.weir.json("status")["agent"]["leftovers"] == []
    site.attach()
    site.weir.stop()
    site.weir.start()
    assert site.weir.json("status")["agent"]["leftovers"] == []


def test_attached_over_a_lost_state(attached):
    """Whose connection was translated is told that it has ended, and does not wait for an answer without end; others go on."""
    site, _, noisy, quiet = attached
    site.weir.kill()
    (site.weir.state_dir / "state.json").unlink()
    site.weir.start()
    site.attach()
    assert "removed, 1 translated connection reset" in site.weir.log()
    with pytest.raises(ConnectionError):
        noisy.get("/more")
    assert quiet.drive(2) == [200] * 2


def test_pins_of_another_agent(world, site):
    """Which it holds: nobody is told to end them, until it is gone."""
    pins = next(world.pins.glob("net-*"))
    other = Weir(world.directory / "other", world.pins)
    other.state_dir.parent.mkdir()
    other.start()
    try:
        assert other.json("status")["agent"]["leftovers"] == [] and str(pins) not in other("status") + other.log()
        assert "another agent, with another state directory, holds the pins" in other.refused(
            "attach", "two", "--port", 81, "--netns", site.place.server_ns.path)
        site.weir.stop()
        assert other.json("status")["agent"]["leftovers"] == [str(pins)]
    finally:
        other.stop()
