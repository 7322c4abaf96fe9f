# SPDX-License-Identifier: GPL-2.0
"""Names that are always new buy no new bursts: those beyond the allowance share one bucket."""
import pytest

from lib.process import eventually

pytestmark = pytest.mark.together

NAMES = 1000
ALLOWED = 50
BURST = 2
EACH = 3


def rotate(client, names):
    """EACH requests under every name; how many passed."""
    statuses = []
    for name in names:
        for _ in range(EACH):
            statuses.append(client.get("/r", X_REMOTE_USER=name))
    assert set(statuses) <= {200, 429}
    return statuses.count(200)


def names(prefix, n):
    return [f"{prefix}-{i}" for i in range(n)]


def test_new_names_share_a_bucket(world):
    site = world.site()
    site.attach("--new-subjects", f"0:{ALLOWED}")
    site.limit("user", burst=BURST)
    site.limit("user", "named", burst=5)
    assert rotate(site.client(), names("u", NAMES)) == ALLOWED * BURST + BURST
    # A name of the operator's is not among them, nor are those who have a bucket.
    assert site.client("named").drive(6) == [200] * 5 + [429]
    assert site.client("u-0").drive(1) == [429]
    over = (NAMES - ALLOWED) * EACH
    status = site.status()
    assert status["notes"] == {"overflow": over}
    assert status["top"][0] == {"limit": "user", "subject": "(overflow)", "passed": BURST, "shed": over - BURST,
                                "dry_run_shed": 0}
    site.check(passed=(ALLOWED + 1) * BURST + 5, shed=NAMES * EACH - (ALLOWED + 1) * BURST + 2)
    assert site.weir.metrics()["weir_identity_notes_total"]["overflow", "web"] == over


def test_each_limit_has_its_own_allowance(world):
    site = world.site()
    site.attach("--new-subjects", "0:1")
    site.limit("user", burst=100)
    site.limit("namespace", burst=1)
    client = site.client("alice")
    path = "/api/v1/namespaces/{}/pods"
    assert [client.get(path.format(name)) for name in ("a", "a", "b", "c", "d")] == [200, 429, 200, 429, 429]
    assert site.client("bob").get(path.format("e")) == 429
    assert {(row["limit"], row["subject"]) for row in site.status()["top"]} == {("namespace", "a"),
                                                                               ("namespace", "(overflow)")}


def test_allowance_comes_back(world):
    site = world.site()
    site.attach("--new-subjects", "20:1")
    site.limit("user", burst=1)
    client = site.client()
    assert client.get("/", X_REMOTE_USER="first") == 200
    fresh = iter(range(100000))
    # One of the names after it is given a bucket, and with it a burst, before long.
    passed = []
    eventually(lambda: passed.append(client.get("/", X_REMOTE_USER=f"n{next(fresh)}")) or passed.count(200) >= 3,
               "new names are admitted again")


def test_off(world):
    site = world.site()
    site.attach("--new-subjects", "0")
    assert site.status()["identity"]["new_subjects"] == "0:0"
    site.limit("user", burst=1)
    assert rotate(site.client(), names("u", 200)) == 200
    assert site.status()["notes"] == {}


def test_words(world):
    world.agent()
    for text in "x", "-1", "1:", "1:-1", "1:2:3", "1:1.5", "":
        assert "QPS" in world.weir.refused("attach", "web", "--port", 1, "--new-subjects", text, status=2)
    assert "nobody listens on port 1 " in world.weir.run("attach", "web", "--port", 1).stderr
    assert world.weir.server()["identity"]["new_subjects"] == "1000:10000"
