# SPDX-License-Identifier: GPL-2.0
"""The machine is restarted: what commands have set ends with it, or with --persist comes back."""
import json
import shutil

import pytest

from lib import kernel
from lib.process import eventually

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def kept(world, monkeypatch, tmp_path):
    """Where --persist keeps what commands set."""
    monkeypatch.setenv("WEIR_PERSIST_DIR", str(tmp_path / "lib"))
    return tmp_path / "lib"


def restart_machine(world, on_disk=False):
    """No agent, no pins, nothing in /run, unless that is on disk: then it is of another boot."""
    world.weir.kill()
    objects = kernel.pinned(world.pins)
    shutil.rmtree(world.pins)
    kernel.wait_until_gone(objects)
    state = world.weir.state_dir / "state.json"
    if on_disk:
        state.write_text(json.dumps({**json.loads(state.read_text()), "boot_id": "another"}))
    else:
        shutil.rmtree(world.weir.state_dir)


def follow(world, site, directory):
    """The Throttle of the site's server, in a file."""
    directory.mkdir()
    (directory / "web.yaml").write_text(
        f"apiVersion: weir/v1\nkind: Throttle\nmetadata: {{name: web}}\nspec:\n  listen: ['*:{site.server.port}']\n"
        f"  netns: {site.place.server_ns.path}\n  trustedProxies: ['0.0.0.0/0']\n"
        "  limits:\n  - {name: user, qps: 0, burst: 3}\n")


def test_persist(world, kept):
    world.weir.start("off", "--persist")
    site = world.site()
    site.attach()
    site.limit("user", burst=3)
    site.limit("user", "bob", burst=1)
    before = world.weir("export")
    assert [site.client("alice").get(PODS) for _ in range(4)] == [200] * 3 + [429]
    assert kept.stat().st_mode & 0o777 == 0o700 and (kept / "state.json").stat().st_mode & 0o777 == 0o600
    restart_machine(world)
    assert site.client("alice").get(PODS) == 200  # nobody limits now
    world.weir.start("off", "--persist")
    assert "the machine was rebooted: what commands had set is read from" in world.weir.log()
    assert world.weir("export") == before
    assert [site.client("alice").get(PODS) for _ in range(4)] == [200] * 3 + [429]
    assert [site.client("bob").get(PODS) for _ in range(2)] == [200, 429]
    world.weir("limit", "delete", "user", "bob")
    restart_machine(world, on_disk=True)
    world.weir.start("off", "--persist")
    assert "bob" not in world.weir("export") and site.status()["mode"] == "limiting"


def test_overrides_added(world, kept):
    """Those that are set one by one are added to the files. They outlive a kill; an agent that stops leaves what earlier versions read."""
    files = world.weir.state_dir / "state.json", kept / "state.json"
    world.weir.start("off", "--persist")
    site = world.site()
    site.attach()
    site.limit("user", burst=3)
    for n in range(20):
        site.limit("user", f"u-{n % 15}", burst=n + 1)
    before = world.weir("export")
    assert files[0].read_text() == files[1].read_text() and files[0].read_text().count("\n") > 1
    world.weir.kill()
    world.weir.start("off")
    assert world.weir("export") == before
    world.weir.stop()
    overrides = json.loads(files[0].read_text())["servers"]["0"]["limits"][0]["overrides"]
    assert [(each["subject"], each["burst"]) for each in overrides] == [(f"u-{n}", n + 1 if n > 4 else n + 16) for n in range(15)]
    world.weir.start("off")
    restart_machine(world)
    world.weir.start("off", "--persist")
    assert world.weir("export") == before


def test_not_persisted(world, kept):
    site = world.site()
    site.attach()
    world.weir.kill()
    world.weir.start()
    assert site.status()["mode"] == "limiting"  # of this boot
    restart_machine(world, on_disk=True)
    world.weir.start()
    assert world.weir.servers() == [] and not kept.exists()
    assert "forgotten, because --persist was not used" in world.weir.log()


def test_two_agents_keep_to_themselves(world, kept, tmp_path):
    world.weir.start("off", "--persist")
    said = world.weir.refused("agent", "--metrics", "off", "--state-dir", tmp_path / "other", "--persist")
    assert "another agent" in said and str(kept) in said


def test_directory_deleted(world, kept):
    """It is made again, with all that is in force, and whose it is."""
    world.weir.start("off", "--persist")
    site = world.site()
    site.attach()
    site.limit("user", burst=1)
    owner, state = (kept / "owner").read_text(), json.loads((kept / "state.json").read_text())
    shutil.rmtree(kept)
    eventually(lambda: (kept / "state.json").exists(), "the state is saved again")
    assert json.loads((kept / "state.json").read_text()) == state
    assert (kept / "owner").read_text() == owner and (kept / "lock").exists()


def test_files_are_not_persisted(world, kept, tmp_path):
    directory = tmp_path / "policy.d"
    place = world.loopback()
    server = world.echo(place)
    world.weir.start("off", "--persist")
    site = world.site(place, server)
    world.weir.stop()
    follow(world, site, directory)
    world.weir.start("off", "--persist", "--policy", directory)
    assert [limit["name"] for limit in world.weir.json("limit", "list")["limits"]] == ["user"]
    assert json.loads((kept / "state.json").read_text())["servers"] == {}
    world.weir("limit", "set", "total", "--qps", "5", "--burst", "9")
    restart_machine(world)
    (directory / "web.yaml").rename(tmp_path / "away")
    (directory / "web.yaml").write_text("")  # wrong: what is not known to be gone stays
    world.weir.start("off", "--persist", "--policy", directory)
    assert [limit["name"] for limit in world.weir.json("limit", "list")["limits"]] == ["total"]
    world.weir.stop()
    (tmp_path / "away").rename(directory / "web.yaml")
    world.weir.start("off", "--persist", "--policy", directory)
    limits = {limit["name"]: limit["file"] for limit in world.weir.json("limit", "list")["limits"]}
    assert limits == {"total": "command line", "user": f"{directory}/web.yaml"}
    world.weir.stop()
    world.weir.start("off", "--persist")
    assert world.weir.servers() == []
