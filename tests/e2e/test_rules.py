# SPDX-License-Identifier: GPL-2.0
"""Limits with names of their own: for some requests, by any key, of requests in flight. With --qps 0 counts are exact."""
import json

import pytest

from lib.process import eventually

pytestmark = pytest.mark.together

SECRETS = "/api/v1/namespaces/{}/secrets"
PODS = "/api/v1/namespaces/{}/pods"
LIST_SECRETS = ("--key", "namespace,user", "--verb", "list", "--resource", "secrets")


def named(site, name, *words):
    site.weir("limit", "set", name, *words)


def statuses(client, n, target, **fields):
    return [client.get(target, **fields) for _ in range(n)]


def holds(site, name, taken):
    eventually(lambda: site.limit_of(name)["in_flight"] == taken, f"{taken} seats of {name} are taken")


def test_for_some_requests_by_namespace_and_user(site):
    named(site, "list-secrets", *LIST_SECRETS, "--qps", 0, "--burst", 2)
    alice, bob = site.client("alice"), site.client("bob")
    assert statuses(alice, 4, SECRETS.format("a")) == [200, 200, 429, 429]
    assert statuses(alice, 3, SECRETS.format("b")) == [200, 200, 429]
    assert statuses(bob, 3, SECRETS.format("a")) == [200, 200, 429]
    assert statuses(alice, 3, PODS.format("a")) == [200] * 3
    assert statuses(alice, 3, SECRETS.format("a") + "/token") == [200] * 3  # get
    assert alice.exchange(SECRETS.format("a"), "POST", b"{}").status == 200
    site.check(passed=13, shed=4)
    assert site.limit_of("list-secrets") == {"limit": "list-secrets", "dry_run": False, "admitted": 6,
                                             "refused": 4, "dry_run_refused": 0}
    metrics = site.weir.metrics()
    assert metrics["weir_limit_requests_total"]["list-secrets", "admitted", "web"] == 6
    assert metrics["weir_limit_requests_total"]["list-secrets", "refused", "web"] == 4
    assert metrics["weir_shed_total"]["combined", "rate", "web"] == 4
    assert [(top["limit"], top["subject"], top["shed"]) for top in site.status()["top"]][0] == (
        "list-secrets", "a/alice", 2)


def test_override_of_a_combined_subject(site):
    named(site, "list-secrets", *LIST_SECRETS, "--qps", 0, "--burst", 1)
    named(site, "list-secrets", "a/alice", "--qps", 0, "--burst", 3)
    alice = site.client("alice")
    assert statuses(alice, 4, SECRETS.format("a")) == [200, 200, 200, 429]
    assert statuses(alice, 2, SECRETS.format("b")) == [200, 429]
    site.weir("limit", "delete", "list-secrets", "a/alice")
    (limit,) = site.weir.json("limit", "list")["limits"]
    assert "overrides" not in limit


def test_dry_run(site):
    """It counts what it would refuse, and that passes; another limit refuses what is over it."""
    named(site, "tight", "--key", "user", "--qps", 0, "--burst", 2, "--dry-run")
    site.limit("user", burst=5)
    assert statuses(site.client("alice"), 5, "/") == [200] * 5
    assert site.limit_of("tight") == {"limit": "tight", "dry_run": True, "admitted": 2, "refused": 0,
                                      "dry_run_refused": 3}
    assert "web: dry run: limit tight would have refused 3\n" in site.weir("status")
    site.check(passed=2, shed=0, dry_run_shed=3)
    assert statuses(site.client("alice"), 2, "/") == [429] * 2
    assert site.limit_of("user")["refused"] == 2
    named(site, "tight", "--enforce")
    assert statuses(site.client("bob"), 4, "/") == [200, 200, 429, 429]


def test_a_rule_meets_all_its_conditions(site):
    named(site, "writes", "--key", "total", "--qps", 0, "--burst", 0, "--verb", "create,update,delete", "--api-group",
          "apps", "--for-namespace", "prod", "--for-group", "dev", "--for-user", "eve")
    target = "/apis/apps/v1/namespaces/{}/deployments"
    client = site.client("alice")
    for method, path, fields, status in (
            ("POST", target.format("prod"), {"X_Remote_Group": "dev"}, 429),
            ("POST", target.format("prod"), {"X_Remote_Group": "ops"}, 200),
            ("POST", target.format("prod"), {}, 200),
            ("GET", target.format("prod"), {"X_Remote_Group": "dev"}, 200),
            ("POST", target.format("test"), {"X_Remote_Group": "dev"}, 200),
            ("POST", PODS.format("prod"), {"X_Remote_Group": "dev"}, 200),
            ("POST", "/apps", {"X_Remote_Group": "dev"}, 200)):
        assert client.exchange(path, method, b"{}" if method == "POST" else None, **fields).status == status, path
    assert site.client("eve").exchange(target.format("prod"), "POST", b"{}").status == 429


def test_by_group(site):
    named(site, "teams", "--key", "group", "--for-group", "dev", "--for-group", "ops", "--qps", 0, "--burst", 2)
    named(site, "teams", "ops", "--qps", 0, "--burst", 3)
    for user in "alice", "bob":
        assert statuses(site.client(user), 2, "/", X_Remote_Group="dev") == ([200] * 2 if user == "alice" else [429] * 2)
    assert statuses(site.client("carol"), 4, "/", X_Remote_Group="ops") == [200] * 3 + [429]
    assert statuses(site.client("dave"), 4, "/", X_Remote_Group="qa") == [200] * 4
    assert {(top["subject"], top["shed"]) for top in site.status()["top"]} == {("dev", 2), ("ops", 1)}


def test_by_source(site):
    named(site, "peers", "--key", "source", "--source", "127.0.0.0/8", "--qps", 0, "--burst", 2)
    assert statuses(site.client("alice"), 1, "/") + statuses(site.client("bob"), 2, "/") == [200, 200, 429]
    assert site.status()["top"][0]["subject"] == "127.0.0.1"


def test_paths(site):
    named(site, "reports", "--key", "total", "--qps", 0, "--burst", 0, "--path", "/reports/*", "--path", "/export")
    client = site.client()
    got = [client.get(path) for path in ("/reports", "/reports/", "/reports/2024", "/export", "/export/x", "/other")]
    assert got == [200, 429, 429, 429, 200, 200]


def test_exempt_sources_and_paths(world):
    site = world.site()
    site.attach("--exempt-path", "/free/*", "--exempt-source", "127.0.0.9")
    site.limit("total", burst=0)
    assert site.client().get("/free/lunch") == 200
    assert site.client(source=("127.0.0.9", 0)).get("/") == 200
    assert site.client().get("/") == 429
    site.check(passed=0, shed=1, exempt=2)


def test_in_flight(site):
    named(site, "slow", "--key", "user", "--in-flight", "2k")
    named(site, "slow", "--in-flight", 2)
    clients = [site.client("alice") for _ in range(2)]
    for i, client in enumerate(clients):
        client.ask(f"/{i}?held=1")
    holds(site, "slow", 2)
    assert site.client("alice").get("/more") == 429
    assert site.client("bob").get("/") == 200
    assert site.weir.metrics()["weir_limit_in_flight"]["slow", "web"] == 2
    rows = site.weir.json("top", "--once", "--interval", "100ms")["rows"]
    assert {row["user"]: row["in_flight"] for row in rows} == {"alice": 2, "bob": 0}
    assert "IN-FLIGHT" in site.weir("top", "--once", "--interval", "100ms")
    assert "IN-FLIGHT" not in site.weir("top", "--once", "--interval", "100ms", "--by", "verb")  # no limit counts so
    assert site.weir.metrics()["weir_shed_total"]["in_flight", "in_flight", "web"] == 1
    table = [line.split() for line in site.weir("status", "web").splitlines()]
    assert ["web", "slow", "enforce", "3", "1", "0", "2", "2"] in table
    site.server.gate.set()
    assert [client.read().status for client in clients] == [200, 200]
    holds(site, "slow", 0)
    assert site.client("alice").get("/again") == 200
    limit = site.limit_of("slow")
    assert (limit["highest"], limit["admitted"], limit["refused"]) == (2, 4, 1)


def test_a_reset_frees_seats_before_the_translation_ends(site):
    """A connection that was translated stays in the table for a minute; what its client has given up does not count."""
    named(site, "slow", "--key", "total", "--in-flight", 1)
    first, second = site.client("alice"), site.client("bob")
    first.ask("/?held=1")
    holds(site, "slow", 1)
    assert second.get("/more") == 429
    site.server.gate.set()
    assert first.read().status == 200
    holds(site, "slow", 0)
    site.server.gate.clear()
    second.ask("/?held=1")
    holds(site, "slow", 1)
    second.reset()
    holds(site, "slow", 0)
    assert site.weir.metrics()["weir_translated_connections"]["web",] == 1


def test_in_flight_of_one_user(site):
    named(site, "slow", "--key", "user", "--in-flight", 1)
    named(site, "slow", "alice", "--in-flight", 2)
    for user, room in ("alice", 2), ("bob", 1):
        for i in range(room):
            site.client(user).ask(f"/{user}/{i}?held=1")
        eventually(lambda: site.server.served() == {"alice": 2, "bob": 3}[user], "all of them are being served")
        assert site.client(user).get("/more") == 429
    assert site.limit_of("slow")["in_flight"] == 3


def test_max_in_flight_does_not_count_watches(site):
    site.weir("max-in-flight", "--read-only", 1, "--mutating", 1)
    for i in range(3):
        site.client("w").ask(PODS.format("a") + f"?watch=1&held=1&{i}")
    eventually(lambda: site.server.served() == 3, "the watches are being served")
    holds(site, "read-only-in-flight", 0)
    site.client("r").ask(PODS.format("a") + "?held=1")
    holds(site, "read-only-in-flight", 1)
    assert site.client("r").get(PODS.format("b")) == 429
    site.client("m").ask(PODS.format("a") + "?held=1", "POST", b"{}")
    holds(site, "mutating-in-flight", 1)
    assert site.client("m").exchange(PODS.format("b"), "POST", b"{}").status == 429
    assert site.client("m").get(PODS.format("b"), X_Remote_Group="system:masters") == 200
    site.weir("max-in-flight", "--read-only", 0)
    assert site.client("r").get(PODS.format("b")) == 200
    assert [limit["name"] for limit in site.weir.json("limit", "list")["limits"]] == ["mutating-in-flight"]


def test_watches_of_one_user(site):
    """What operators ask Kubernetes for in vain."""
    named(site, "watches", "--key", "user", "--long-running", "yes", "--in-flight", 1)
    watch = PODS.format("a") + "?watch=1&held=1"
    site.client("alice").ask(watch)
    holds(site, "watches", 1)
    assert site.client("alice").get(watch) == 429
    assert site.client("alice").get(PODS.format("a")) == 200


def test_trace_names_limits(site):
    site.limit("user", burst=0)
    named(site, "list-secrets", *LIST_SECRETS, "--qps", 0, "--burst", 0)
    trace = site.world.trace()
    assert site.client("alice").get(SECRETS.format("a")) == 429
    (request,) = trace.end()
    assert sorted(request["limits"]) == ["list-secrets", "user"]


def test_a_new_agent_takes_over(site):
    named(site, "slow", "--key", "user", "--in-flight", 2)
    named(site, "list-secrets", *LIST_SECRETS, "--qps", 0, "--burst", 2)
    alice = site.client("alice")
    assert alice.get(SECRETS.format("a")) == 200
    held = site.client("alice")
    held.ask("/?held=1")
    holds(site, "slow", 1)
    limits = site.weir.json("limit", "list")
    site.weir.kill()
    assert alice.get(SECRETS.format("a")) == 200
    site.weir.start()
    assert site.weir.json("limit", "list") == limits
    assert statuses(alice, 2, SECRETS.format("a")) == [429, 429]
    holds(site, "slow", 1)
    site.server.gate.set()
    assert held.read().status == 200
    holds(site, "slow", 0)


def test_delete(site):
    named(site, "list-secrets", *LIST_SECRETS, "--qps", 0, "--burst", 0)
    client = site.client("alice")
    assert client.get(SECRETS.format("a")) == 429
    site.weir("limit", "delete", "list-secrets")
    assert client.get(SECRETS.format("a")) == 200
    assert site.weir.json("limit", "list") == {"limits": []}


def test_an_agent_refuses(site):
    """What only the agent can tell: status 1."""
    named(site, "x", "--key", "user", "--qps", 1, "--burst", 1)
    before = site.weir.json("limit", "list")
    for words, said in (
            (("new", "--qps", 1, "--burst", 1), "a new one needs --key; for one user: weir limit set user new"),
            (("new", "--key", "user", "--qps", 1), "burst is missing"),
            (("x", "--key", "total", "--qps", 1, "--burst", 1), "key cannot be changed: delete it first"),
            (("x", "--in-flight", 1), "delete it first"),
            (("x", "--verb", "get", "--qps", 1, "--burst", 1), "rules cannot be changed"),
            (("user", "--in-flight", 1), "another name"),
            (("g", "--key", "group", "--in-flight", 1), "rules that name groups")):
        assert said in site.weir.refused("limit", "set", *words)
    assert "nothing for" in site.weir.refused("limit", "delete", "x", "alice")
    assert site.weir.json("limit", "list") == before


@pytest.mark.parametrize("words, said", [
    (("x", "--key", "users", "--in-flight", 1), "--key: \"users\" is not a key"),
    (("x", "--verb", "steal", "--in-flight", 1), "--verb: \"steal\" is not a verb"),
    (("x", "--path", "a", "--in-flight", 1), "--path: \"a\" is not a path"),
    (("x", "--source", "10/8", "--in-flight", 1), "--source: \"10/8\""),
    (("x", "--resource", "Pods", "--in-flight", 1), "--resource: \"Pods\""),
    (("x", "--long-running", "maybe", "--in-flight", 1), "--long-running: \"maybe\""),
    (("x", "--penalty", "much", "--in-flight", 1), "--penalty: "),
    (("x", "--in-flight", 1, "--qps", 1, "--burst", 1), "--in-flight: "),
    (("x", "--in-flight", "many"), "--in-flight: \"many\""),
    (("x",), "--qps and --burst, --open, --in-flight or --deny are missing"),
    (("X", "--in-flight", 1), "LIMIT: \"X\""),
    ((), "the name of the limit is missing"),
])
def test_wrong_usage(site, words, said):
    assert said in site.weir.refused("limit", "set", *words, status=2)


IDLE = {
    "no request for a resource has these verbs": ("--resource", "pods", "--verb", "head"),
    "no request for a path that is of no resource has these verbs": ("--non-resource", "--verb", "list"),
    "its paths are of no resource": ("--resource", "pods", "--path", "/healthz"),
    "such requests are always long-running": ("--verb", "watch", "--long-running", "no"),
    "such requests are never long-running": ("--verb", "list", "--long-running", "yes"),
    "what is for no resource has no namespace": ("--path", "/version", "--for-namespace", "shop"),
    "these resources are of the whole cluster, and have no namespace": ("--resource", "nodes", "--for-namespace", "shop"),
}


@pytest.mark.parametrize("why", IDLE)
def test_rules_that_match_nothing(site, tmp_path, why):
    """They are set, and it is said that they do nothing: by limit set, check and apply."""
    words = ("limit", "set", "idle", "--key", "total", *IDLE[why], "--qps", 1, "--burst", 1)
    done = site.weir.run(*words)
    assert done.returncode == 0
    assert done.stderr == f'weir: warning: limit "idle": its rule matches nothing: {why}\n'
    site.weir("limit", "delete", "idle")
    done = site.weir.run("--json", *words)
    assert (json.loads(done.stdout)["warnings"], done.stderr) == ([f"its rule matches nothing: {why}"], "")
    exported = tmp_path / "exported.yaml"
    exported.write_text(site.weir("export"))
    site.weir("limit", "delete", "idle")
    for command in "check", "apply":
        done = site.weir.run(command, "-f", exported)
        assert done.returncode == 0
        assert f'warning: $.spec.limits[0]: limit "idle": its rule matches nothing: {why}\n' in done.stderr


def test_keys_and_overrides_that_are_never_used(site):
    def warnings(*words):
        return json.loads(site.weir.run("--json", "limit", "set", *words).stdout).get("warnings", [])

    amount = ("--qps", 1, "--burst", 1)
    assert warnings("a", "--key", "namespace", "--non-resource", *amount) == [
        "it counts for each namespace, and what its rules are for has none"]
    assert warnings("b", "--key", "group", "--for-group", "ci", *amount) == []
    assert warnings("b", "ci", *amount) == []
    assert warnings("b", "etl", *amount) == [
        'no rule is for the group "etl", of the override: only members of another one, too, are under it']
    assert warnings("c", "--key", "user", "--for-user", "alice", *amount) == []
    assert warnings("c", "bob", *amount) == ['no rule is for "bob", of the override']
    assert warnings("d", "--key", "namespace", "--for-namespace", "shop", *amount) == []
    assert warnings("d", "shop", *amount) == []
    assert warnings("d", "other", *amount) == ['no rule is for "other", of the override']
    assert warnings("e", "--key", "user", "--resource", "pods,pod/log,pods/log", *amount) == [
        'the resource "pod/log" is no plural: Kubernetes\' resources are, like "pods"']


SITE = """
daemon off;
pid {directory}/nginx.pid;
error_log {directory}/error.log;
events {{ worker_connections 64; }}
http {{
    log_format seen "$connection $request_method $uri $status";
    access_log {directory}/access.log seen;
    server {{
        listen {listen};
        location / {{ return 200 "$uri\\n"; }}
    }}
}}
"""

# What nginx serves as /secret or as /public/a, as it reads them; no exemption is for any of them.
ODD = ("/public/../secret", "/public/..%2fsecret", "/public/%2e%2e/secret", "/public//../secret", "/public%2f../secret",
       "/public/x/../../secret", "//public/a", "/public//a", "/public/./a", "/secret/../public/a", "/p%75blic/a")


@pytest.mark.parametrize("paths", ["kubernetes", "nginx", "raw"])
def test_exempt_paths_that_nginx_reads_as_others(world, paths):
    place = world.veth()
    site = world.site(place, world.real_server("nginx", place, text=SITE))
    site.attach("--exempt-path", "/public/*", "--paths", paths)
    site.limit("user", burst=0)
    client = site.client("alice")
    for target in ODD:
        assert client.exchange(target).status == 429, target
    for target in "/public/", "/public/a", "/public/.well-known/b":
        client.ask(target)
        assert client.read().status == 200, target
    site.check(passed=0, shed=len(ODD), exempt=3)
    assert site.server.targets() == ["/public/", "/public/a", "/public/.well-known/b"]
