# SPDX-License-Identifier: GPL-2.0
"""`weir audit`: who has changed what, what was there before, and nothing that is no change."""
import os

import pytest

from lib.common import KEEPER
from lib.process import eventually

pytestmark = pytest.mark.together

POLICY = """
apiVersion: weir/v1
kind: Throttle
metadata: {name: web}
spec:
  limits:
  - {name: namespace, qps: %d, burst: 9}
"""


@pytest.fixture
def site(world):
    """Nothing is written down yet."""
    site = world.site()
    world.forget("audit.jsonl")
    site.attach()
    return site


def audit(world, *words):
    return [change for change in world.weir.json("audit", *words)["changes"] if change["server"] != KEEPER]


def said(changes):
    return [(change["command"], change["what"], change["before"], change["after"]) for change in changes]


def test_who_and_what(world, site):
    weir = world.weir
    weir("limit", "set", "user", "--qps", 20, "--burst", 40)
    weir("limit", "set", "user", "--qps", 30, "--burst", 40)
    weir("limit", "set", "user", "--qps", 30, "--burst", 40)  # it is that already
    weir("limit", "set", "user", "alice", "--qps", 5, "--burst", 6)
    weir("limit", "set", "lists", "--key", "total", "--verb", "list", "--in-flight", 3)
    weir("limit", "delete", "user", "alice")
    weir("pause", "web")
    weir.refused("limit", "delete", "total")
    attached, *changes = audit(world)
    assert (attached["command"], attached["what"], attached["before"]) == ("attach", "server", None)
    assert attached["after"]["listen"] == [f"*:{site.server.port}"]
    assert said(changes) == [
        ("limit set", "limit user", None, {"qps": "20", "burst": 40, "mode": "enforce"}),
        ("limit set", "limit user", {"qps": "20", "burst": 40, "mode": "enforce"},
         {"qps": "30", "burst": 40, "mode": "enforce"}),
        ("limit set", "limit user for alice", None, {"qps": "5", "burst": 6}),
        ("limit set", "limit lists", None,
         {"key": "total", "in_flight": 3, "mode": "enforce", "rules": changes[3]["after"]["rules"]}),
        ("limit delete", "limit user for alice", {"qps": "5", "burst": 6}, None),
        ("pause", "paused", False, True),
    ]
    for change in changes:
        assert change["server"] == "web" and change["time"].endswith("Z")
        assert change["by"]["uid"] == os.getuid() and change["by"]["user"] == "root" and change["by"]["pid"] > 0
    assert len({change["by"]["pid"] for change in changes}) == len(changes)
    table = weir("audit")
    assert "exempt_groups" not in table
    assert table.splitlines()[0].split() == ["TIME", "WHO", "COMMAND", "SERVER", "WHAT", "BEFORE", "AFTER"]
    (line,) = [line for line in table.splitlines() if "qps 30" in line]
    assert "limit user" in line and "qps 20  " in line and "burst" not in line


def test_what_a_table_says_of_a_server(world):
    """Where it listens, and what keeps it from limiting; the rest is in the JSON."""
    site = world.site()
    site.attach("--dry-run")
    (line,) = [line for line in site.weir("audit", "web").splitlines() if " attach " in line][-1:]
    assert f'listen ["*:{site.server.port}"]' in line and "dry_run true" in line
    assert "inside" not in line and "paused" not in line


def test_over_restarts(world, site):
    """Also while the machine's other parts are gone; what is of another server, or older, can be left out."""
    site.limit("user", qps=1, burst=1)
    before = audit(world)
    world.weir.kill()
    world.weir.start()
    site.limit("total", qps=1, burst=1)
    changes = audit(world)
    assert changes[:-1] == before and changes[-1]["what"] == "limit total"
    assert audit(world, "web") == changes == audit(world, "--since", "1h")
    assert 'no server "other"' in world.weir.refused("audit", "other")
    world.weir("detach", "web", "--force")
    assert said(audit(world))[-3:] == [("detach", "server", changes[0]["after"], None),
                                       ("detach", "limit user", {"qps": "1", "burst": 1, "mode": "enforce"}, None),
                                       ("detach", "limit total", {"qps": "1", "burst": 1, "mode": "enforce"}, None)]


def test_a_policy_file(world, site, tmp_path):
    """What is applied is the caller's doing, and says from which file; what the agent follows is the file's."""
    path = tmp_path / "web.yaml"
    path.write_text(POLICY % 7)
    world.weir("apply", "-f", path)
    (change,) = audit(world)[1:]
    assert change["command"] == "apply" and change["by"]["user"] == "root" and change["what"] == "limit namespace"
    assert change["after"] == {"qps": "7", "burst": 9, "mode": "enforce", "file": str(path)}
    world.weir("delete", "-f", path)
    world.weir.stop()
    world.weir.start("off", "--policy", path)
    path.write_text(POLICY % 8)
    changes = eventually(lambda: [c for c in audit(world) if c["after"] and c["after"].get("qps") == "8"], "it is noticed")
    assert [change["by"] for change in changes] == [{"files": [str(path)]}]
    assert str(path) in world.weir("audit")


def test_words_that_are_wrong(world, site):
    assert 'no server "wbe": is "web" meant?' in world.weir.refused("audit", "wbe")
    eventually(lambda: world.weir.run("audit", "web", "--since", "1s").stderr, "it is a second ago")
    done = world.weir.run("audit", "web", "--since", "1s")
    assert (done.returncode, done.stderr) == (0, "weir: no rows: no such change is written down; weir audit shows all\n")
    assert "at least 1s" in world.weir.refused("audit", "--since", "0", status=2)
