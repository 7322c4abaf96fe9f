# SPDX-License-Identifier: GPL-2.0
"""Which requests a limit refuses. With --qps 0 a burst is there once, so every number is exact."""
import time

import pytest

from lib.client import check_shed

pytestmark = pytest.mark.together

LONG_NAME = "system:serviceaccount:" + "n" * 63 + ":" + "s" * 253
NAME_SHOWN = 120


def passes(statuses):
    """How many passed, when all that passed came before all that did not."""
    n = statuses.count(200)
    assert statuses == [200] * n + [429] * (len(statuses) - n)
    return n


def test_no_limit(site):
    assert passes(site.client().drive(20)) == 20
    site.check(passed=20, shed=0)


def test_total(site):
    site.limit("total", burst=5)
    assert passes(site.client("a").drive(4)) == 4
    assert passes(site.client("b").drive(4)) == 1
    assert passes(site.client("c").drive(2)) == 0
    site.check(passed=5, shed=5)
    assert site.weir.metrics()["weir_shed_total"]["total", "rate", "web"] == 5


def test_user_default_and_overrides(site):
    site.limit("user", burst=3)
    site.limit("user", "more", burst=5)
    site.limit("user", "less", burst=1)
    for user, burst in ("some", 3), ("other", 3), ("more", 5), ("less", 1):
        assert passes(site.client(user).drive(6)) == burst
    site.check(passed=12, shed=12)
    assert site.weir.metrics()["weir_shed_total"]["user", "rate", "web"] == 12


def test_namespace_default_and_overrides(site):
    site.limit("namespace", burst=2)
    site.limit("namespace", "big", burst=4)
    client = site.client()
    assert passes(client.drive(5, "/api/v1/namespaces/small/pods")) == 2
    assert passes(client.drive(5, "/apis/apps/v1/namespaces/big/deployments")) == 4
    assert client.get("/api/v1/namespaces/small/pods") == 429
    assert client.get("/api/v1/namespaces/third/pods") == 200
    assert passes(client.drive(3, "/api/v1/nodes")) == 3
    site.check(passed=10, shed=5)
    assert site.weir.metrics()["weir_shed_total"]["namespace", "rate", "web"] == 5


def test_refused_by_user_takes_nothing_of_the_rest(site):
    site.limit("total", burst=10)
    site.limit("namespace", burst=8)
    site.limit("user", burst=3)
    path = "/api/v1/namespaces/shop/pods"
    assert passes(site.client("greedy").drive(50, path)) == 3
    assert passes(site.client("second").drive(4, path)) == 3
    assert passes(site.client("third").drive(4, path)) == 2
    assert passes(site.client("fourth").drive(4)) == 2
    site.check(passed=10, shed=52)
    shed = site.weir.metrics()["weir_shed_total"]
    # The third's last two are refused by the namespace, the fourth's by the server: neither user has used up his own.
    assert shed["user", "rate", "web"] == 48
    assert shed["namespace", "rate", "web"] == 2
    assert shed["total", "rate", "web"] == 2


def test_refused_by_total_takes_nothing_of_user(site):
    site.limit("user", burst=3)
    site.limit("total", burst=1)
    client = site.client("alice")
    assert passes(client.drive(5)) == 1
    site.weir("limit", "delete", "total")
    assert passes(client.drive(5)) == 2
    site.check(passed=3, shed=7)


def test_zero_burst_refuses_all(site):
    site.limit("user", qps=100, burst=0)
    assert passes(site.client().drive(5)) == 0
    site.check(passed=0, shed=5)


def test_zero_qps_gives_nothing_back(site):
    site.limit("user", burst=1)
    client = site.client()
    assert client.get("/1") == 200
    answer = client.exchange("/2")
    assert check_shed(answer) == 3600


def test_change_keeps_tokens(site):
    site.limit("user", burst=10)
    client = site.client("alice")
    assert passes(client.drive(4)) == 4
    site.limit("user", burst=20)
    assert passes(client.drive(10)) == 6
    site.limit("user", burst=30)
    assert passes(client.drive(5)) == 0
    assert passes(site.client("bob").drive(31)) == 30


def test_change_clips_tokens(site):
    site.limit("user", burst=10)
    client = site.client("alice")
    assert passes(client.drive(1)) == 1
    site.limit("user", burst=2)
    site.limit("user", burst=10)
    assert passes(client.drive(5)) == 2


def test_change_leaves_other_buckets(site):
    site.limit("user", burst=3)
    site.limit("user", "alice", burst=4)
    alice, bob = site.client("alice"), site.client("bob")
    assert passes(alice.drive(2)) == 2
    assert passes(bob.drive(2)) == 2
    site.limit("user", "alice", burst=100)
    site.limit("namespace", burst=1)
    assert passes(bob.drive(3)) == 1
    assert passes(alice.drive(3)) == 2


def test_delete(site):
    site.limit("user", burst=1)
    site.limit("user", "alice", burst=2)
    alice, bob = site.client("alice"), site.client("bob")
    assert passes(alice.drive(3)) == 2
    assert passes(bob.drive(3)) == 1
    site.weir("limit", "delete", "user", "alice")
    assert passes(alice.drive(2)) == 0
    site.weir("limit", "delete", "user")
    assert passes(alice.drive(3)) == 3
    assert passes(bob.drive(3)) == 3
    site.check(passed=9, shed=5)
    assert site.weir.json("limit", "list") == {"limits": []}


def test_fractional(site):
    """Who waits as long as he is told is served; nobody gets more than the rate gives."""
    site.limit("user", qps=0.8, burst=1)
    client = site.client()
    begin = time.monotonic()
    assert client.get("/first") == 200
    passed = 1
    for i in range(3):
        answer = client.exchange(f"/{i}")
        if answer.status == 429:
            assert check_shed(answer) in (1, 2)
            time.sleep(check_shed(answer))
            assert client.get(f"/after/{i}") == 200
        passed += 1
    assert passed <= 1 + 0.8 * (time.monotonic() - begin)


def test_health_is_exempt(site):
    site.limit("total", burst=0)
    client = site.client()
    for target in "/healthz", "/livez", "/readyz", "/readyz/ping", "/livez?verbose", "/healthz/etcd":
        assert client.get(target) == 200
    for target in "/healthzz", "/api/healthz", "/livezy", "/":
        assert client.get(target) == 429
    site.check(passed=0, shed=4, exempt=6)


@pytest.mark.parametrize("family", [4, 6])
def test_untrusted_peer_names_nobody(world, family):
    site = world.site(world.loopback(family))
    site.attach("--trusted-proxy", "192.0.2.0/24", "--trusted-proxy", "2001:db8::/32")
    site.limit("user", burst=3)
    site.limit("user", "boss", burst=100)
    assert passes(site.client("boss").drive(2)) == 2
    assert passes(site.client("other").drive(2)) == 1
    assert passes(site.client().drive(2)) == 0
    (top,) = site.status()["top"]
    assert top == {"limit": "user", "subject": "::/64" if family == 6 else "127.0.0.1", "passed": 3, "shed": 3,
                   "dry_run_shed": 0}


def test_trusted_proxy_by_network(world):
    site = world.site(world.veth(6))
    site.attach("--trusted-proxy", "10.0.0.0/8", "--trusted-proxy", "fd00:7::/64")
    site.limit("user", burst=1)
    assert passes(site.client("a").drive(2)) == 1
    assert passes(site.client("b").drive(2)) == 1


def test_repeated_user_counts_for_the_peer(site):
    site.limit("user", burst=0)
    site.limit("user", "127.0.0.1", burst=100)
    assert site.client("alice").get("/", X_REMOTE_USER="bob") == 200
    assert site.client("alice").get("/") == 429
    assert site.unread() == {}
    assert site.status()["notes"] == {"repeated_user": 1}


def test_override_of_an_address(site):
    site.limit("user", burst=0)
    site.limit("user", "127.0.0.1", burst=2)
    assert passes(site.client().drive(3)) == 2
    assert passes(site.client("alice").drive(1)) == 0


def test_ipv6_users_are_networks(world):
    place = world.veth(6)
    site = world.site(place)
    site.attach("--trusted-proxy", "192.0.2.0/24")
    for address in "fd00:7::99/64", "fd00:8::99/64":
        world.address(place.client_ns, address)
    place.server_ns.ip("route", "add", "fd00:8::/64", "dev", "eth0")
    world.at_end(place.server_ns.ip, "route", "del", "fd00:8::/64", "dev", "eth0")
    site.limit("user", burst=3)
    site.limit("user", "fd00:8::1", burst=1)
    assert passes(site.client(source=("fd00:7::2", 0)).drive(2)) == 2
    assert passes(site.client(source=("fd00:7::99", 0)).drive(2)) == 1
    assert passes(site.client(source=("fd00:8::99", 0)).drive(2)) == 1
    assert {top["subject"] for top in site.status()["top"]} == {"fd00:7::/64", "fd00:8::/64"}


def test_long_names_are_told_apart(site):
    """Names are hashed whole, and shown as far as there is room."""
    assert len(LONG_NAME) == 339
    twin = LONG_NAME[:-1] + "t"
    site.limit("user", burst=2)
    site.limit("user", twin, burst=3)
    assert passes(site.client(LONG_NAME).drive(4)) == 2
    assert passes(site.client(twin).drive(4)) == 3
    top = {(subject["passed"], subject["shed"]): subject["subject"] for subject in site.status()["top"]}
    assert set(top) == {(2, 2), (3, 1)}
    for name in top.values():
        assert name.startswith(LONG_NAME[:NAME_SHOWN - 20]), name
        assert len(name) < len(LONG_NAME)


def test_top_is_sorted(site):
    site.limit("user", burst=1)
    for user, n in ("few", 2), ("many", 9), ("none", 1), ("some", 4):
        site.client(user).drive(n)
    assert [(s["subject"], s["shed"]) for s in site.status()["top"]] == [("many", 8), ("some", 3), ("few", 1)]


def test_dry_run(world):
    site = world.site()
    site.attach("--dry-run")
    site.limit("user", burst=3)
    assert passes(site.client().drive(10)) == 10
    site.check(passed=3, shed=0, dry_run_shed=7)
    assert "web: dry run: nothing is refused; 7 requests would have been\n" in site.weir("status")
    status = site.status()
    assert (status["mode"], status["dry_run"], status["translated"]) == ("dry-run", True, 0)


@pytest.mark.parametrize("whose", ["the server's", "the limit's"])
def test_every_dry_run_is_counted_alike(world, whose):
    site = world.site()
    site.attach(*["--dry-run"] * (whose == "the server's"))
    site.weir("limit", "set", "user", "--qps", 0, "--burst", 3, *["--dry-run"] * (whose == "the limit's"))
    trace = world.trace("web", "--decision", "dry_run_shed")
    assert passes(site.client("alice").drive(10)) == 10
    assert [(said["user"], said["limits"]) for said in trace.end()] == [("alice", ["user"])] * 7
    site.check(passed=3, shed=0, dry_run_shed=7)
    assert site.limit_of("user") == {"limit": "user", "dry_run": True, "admitted": 3, "refused": 0,
                                     "dry_run_refused": 7}
    limits = [line.split() for line in site.weir("status", "web").split("\n\n") if " ADMITTED " in line]
    assert ["web", "user", "dry-run", "3", "0", "7", "-", "-"] == limits[0][-8:]
    (use,) = site.status()["top"]
    assert (use["subject"], use["passed"], use["shed"], use["dry_run_shed"]) == ("alice", 3, 0, 7)


def test_dry_run_in_place(world):
    """It begins and ends without a limit lost, and what was counted stays what it was."""
    site = world.site()
    site.attach("--dry-run")
    site.limit("user", burst=2)
    client = site.client("alice")
    assert passes(client.drive(5)) == 5
    site.weir("dry-run", "web", "off")
    assert site.status()["mode"] == "limiting" and "dry run" not in site.weir("status")
    assert passes(client.drive(4)) == 0
    assert site.weir("limit", "set", "user", "--qps", 0, "--burst", 2) == 'server "web": limit user is set, and enforced\n'
    site.weir("dry-run", "web", "on")
    assert site.weir("limit", "set", "user", "--qps", 0, "--burst", 2) == (
        'server "web": limit user is set; the server is in a dry run: nothing is refused; "weir dry-run web off" ends that\n')
    assert passes(client.drive(1)) == 1
    site.check(passed=2, shed=4, dry_run_shed=4)
    (use,) = site.status()["top"]
    assert (use["shed"], use["dry_run_shed"]) == (4, 4)


def test_pause_and_resume(site):
    site.limit("user", burst=2)
    client = site.client()
    assert passes(client.drive(4)) == 2
    site.weir("pause", "web")
    assert site.status()["mode"] == "paused"
    assert passes(client.drive(10)) == 10
    site.weir("resume")
    assert site.status()["mode"] == "limiting"
    assert passes(client.drive(3)) == 0
    site.check(passed=12, shed=5)


def test_two_servers_have_buckets_of_their_own(world):
    place = world.loopback()
    one, two = world.site(place), world.site(place, world.echo(place))
    for site, name in (one, "web"), (two, "api"):
        world.weir("attach", name, "--port", site.server.port, "--netns", place.server_ns.name)
    world.attached()
    assert "name one of them with --server: web, api" in world.weir.refused("limit", "set", "user", "--qps", 0, "--burst", 1)
    world.weir("limit", "set", "user", "--qps", 0, "--burst", 1, "--server", "web")
    world.weir("limit", "set", "user", "--qps", 0, "--burst", 3, "--server", "api")
    assert passes(one.client().drive(5)) == 1
    assert passes(two.client().drive(5)) == 3
    assert (world.weir.counts("web")["shed"], world.weir.counts("api")["shed"]) == (4, 2)


def test_listen_names_one_address(world):
    place = world.veth()
    server = world.real_server("nginx", place)
    world.address(place.server_ns, "10.9.7.100/24")
    site = world.site(place, server)
    done = world.weir.run("attach", "web", "--listen", "10.9.7.100:8080", "--netns", place.server_ns.path)
    assert done.returncode == 0 and "nobody listens on port 8080" in done.stderr
    world.attached()
    site.limit("user", burst=0)
    assert passes(site.client().drive(2)) == 2
    assert site.weir.counts()["passed"] == 0
