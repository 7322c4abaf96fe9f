# SPDX-License-Identifier: GPL-2.0
"""`weir history`: what was asked and refused, also over restarts of the agent."""
import itertools
import re
import time

import pytest

pytestmark = pytest.mark.together


@pytest.fixture
def site(world):
    """Nothing is known yet of what was asked before."""
    site = world.site()
    world.forget("history")
    site.attach()
    return site


def history(world, *words):
    return world.weir.json("history", *words)["rows"]


def total(world, by, *names):
    return {tuple(row[name] for name in names): (row["requests"], row["refused"], row["dry_run"])
            for row in history(world, "--by", by, "--sum")}


def test_before_a_minute_is_over(world, site):
    site.limit("user", burst=2)
    assert site.client("alice").drive(3, "/api/v1/namespaces/dev/pods") == [200, 200, 429]
    site.client("bob").get("/api/v1/namespaces/prod/pods")
    assert total(world, "user", "user") == {("alice",): (3, 1, 0), ("bob",): (1, 0, 0)}
    assert total(world, "namespace", "namespace") == {("dev",): (3, 1, 0), ("prod",): (1, 0, 0)}
    assert total(world, "refusal", "limit", "user") == {("user", "alice"): (1, 1, 0)}
    assert total(world, "limit", "server", "limit") == {("web", "user"): (4, 1, 0)}
    assert total(world, "server", "server") == {("web",): (4, 1, 0)}
    assert history(world, "--filter", "carol") == history(world, "web", "--filter", "carol") == []
    assert world.weir.refused("history", "other") == 'weir: there is no server "other", only web'
    assert [row["user"] for row in history(world, "web", "--filter", "BO")] == ["bob"]


def test_a_part_of_a_minute(world, site):
    """It is as long as it is, to a fraction of a second: nobody's rate is told too high."""
    def asked():
        time.sleep(0.4)
        site.client("alice").drive(1)
        began = time.monotonic()
        (*_, row) = history(world)
        return row["seconds"], began, time.monotonic()

    first = latest = asked()
    while latest[0] <= first[0]:  # also if a minute ends in between
        first, latest = latest, asked()
    lasted = latest[0] - first[0]
    assert latest[1] - first[2] - 0.01 <= lasted <= latest[2] - first[1] + 0.01


def test_a_limit_in_mind(world, site):
    """What one would have refused, though none was set: at least so many, and no more than a dry run of it."""
    world.weir("limit", "set", "user", "--qps", "0", "--burst", "3", "--dry-run")
    site.client("alice").drive(9)
    site.client("bob").drive(2)
    rows = {row["user"]: row for row in history(world, "--sum", "--over", "0:3")}
    assert (rows["alice"]["over"], rows["alice"]["dry_run"]) == (6, 6)
    assert rows["bob"]["over"] == 0
    heads, first, _ = world.weir("history", "web", "--sum", "--over", "0:3").splitlines()
    assert dict(zip(heads.split(), first.split()))["OVER"] == "6"
    assert history(world, "--sum", "--over", "100/m:9")[0]["over"] == 0
    for words in "x", "1:x", "1:", ":1", "-1":
        assert "is not QPS or QPS:BURST" in world.weir.refused("history", "--over", words, status=2)


def test_over_restarts(world, site):
    """All requests are there, each once, whether an agent was there or not. What ends writes down what it has."""
    alice = site.client("alice")
    alice.drive(3)
    world.weir.stop()
    alice.drive(2)
    world.weir.start()
    alice.drive(1)
    world.weir.kill()
    alice.drive(4)
    world.weir.start()
    rows = history(world)
    asked = [row["requests"] for row in rows]  # a minute may end in between: it has a row, too
    assert sum(asked) == 10 and 3 in itertools.accumulate(asked) and asked[-1] >= 4
    assert total(world, "user", "user") == {("alice",): (10, 0, 0)}
    assert all(row["time"].endswith("Z") and row["seconds"] > 0 for row in rows)
    heads, *lines = world.weir("history", "web").splitlines()
    assert heads.split() == ["TIME", "SECONDS", "USER", "REQUESTS", "REFUSED", "DRY-RUN", "HELD"]
    assert lines[0].split()[2:4] == ["alice", str(asked[0])]


def test_suggested_limits(world, site, tmp_path):
    """What is suggested is accepted, in a dry run, and leaves what is there alone."""
    site.limit("user", burst=7)
    for n in range(3):
        site.client("alice").drive(2, f"/api/v1/namespaces/ns{n}/pods")
    text = world.weir("suggest")
    assert "# user: there is a limit" in text
    assert re.search(r"# namespace: the busiest minute of ns\d, one of 3 namespaces, had ", text)
    assert "# total: the busiest minute had " in text
    path = tmp_path / "suggested.yaml"
    path.write_text(text)
    world.weir("check", "-f", path)
    assert world.weir("suggest", "-o", "yaml").startswith("apiVersion: v1\nkind: List\n")    # as export has it
    (throttle,) = world.weir.json("suggest", "web", "--headroom", 0)["items"]
    limits = {limit["name"]: limit for limit in throttle["spec"]["limits"]}
    assert set(limits) == {"user", "total", "namespace"} and limits["user"]["burst"] == 7
    assert limits["total"]["mode"] == "dry-run" and limits["total"]["burst"] == 2 * limits["total"]["qps"] >= 2
    world.weir("apply", "-f", path)
    assert site.client("bob").drive(3, "/api/v1/namespaces/ns1/pods") == [200] * 3
    assert "must be from 1s to 24h" in world.weir.refused("suggest", "--since", "0", status=2)


def test_words_that_are_wrong(world, site):
    refused = world.weir.refused
    assert '"who" is not one of server, user' in refused("history", "--by", "who", status=2)
    assert "must be from 1s to 24h" in refused("history", "--since", "25h", status=2)
    assert "must be from 1s to 24h" in refused("history", "--since", "0", status=2)
