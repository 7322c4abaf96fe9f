# SPDX-License-Identifier: GPL-2.0
"""What `weir explain` says of a request is what then becomes of it; and saying so changes nothing."""
import json
import random

import pytest

from lib.process import eventually

pytestmark = pytest.mark.together

SECRETS = "/api/v1/namespaces/{}/secrets"
PODS = "/api/v1/namespaces/{}/pods"
COUNTED = "weir_requests_total", "weir_shed_total", "weir_identity", "weir_limit", "weir_event", "weir_un"


def explain(site, target, method="GET", user=None, groups=(), *words):
    who = () if user is None else ("--user", user)
    return site.weir.json("explain", method, target, *who, *(word for group in groups for word in ("--group", group)),
                          *words)


def says(explained):
    return {limit["limit"]: limit["says"] for limit in explained["limits"]}


def limit(explained, name):
    (found,) = [each for each in explained["limits"] if each["limit"] == name]
    return found


def everything(site):
    """All that weir has counted of requests. (Connections of those before may end at any time.)"""
    status = site.status()
    return ({name: samples for name, samples in site.weir.metrics().items() if name.startswith(COUNTED)},
            status["limits"], status["top"])


def test_a_rate(site):
    site.limit("user", qps=0.01, burst=2)
    client = site.client("alice")
    first = explain(site, "/", user="alice")
    assert (first["decision"], says(first)) == ("passed", {"user": "admits"})
    assert limit(first, "user")["tokens"] == 2 and limit(first, "user")["new"]
    assert limit(first, "user")["subject"] == "alice"
    assert [client.get("/") for _ in range(2)] == [200, 200]
    last = explain(site, "/", user="alice")
    assert (last["decision"], says(last)) == ("shed", {"user": "refuses"})
    assert 0 <= limit(last, "user")["tokens"] < 1 and "new" not in limit(last, "user")
    assert 90 < limit(last, "user")["wait"] <= 100
    assert 91 <= last["retry_after"] <= 100
    other = explain(site, "/", user="bob")
    assert (other["decision"], limit(other, "user")["tokens"]) == ("passed", 2)
    site.check(passed=2, shed=0)


def test_for_ever(site):
    site.limit("total", burst=0)
    explained = explain(site, "/")
    assert limit(explained, "total")["wait"] is None
    assert limit(explained, "total")["subject"] is None
    assert "for ever" in site.weir("explain", "GET", "/")


def test_what_is_read(site):
    site.limit("user", burst=1)
    request = explain(site, "/apis/apps/v1/namespaces/shop/deployments/web/scale", "PATCH", "alice")["request"]
    assert {key: request[key] for key in ("user", "verb", "group", "resource", "subresource", "name", "namespace",
                                          "identified_by")} == {
        "user": "alice", "verb": "patch", "group": "apps", "resource": "deployments", "subresource": "scale",
        "name": "web", "namespace": "shop", "identified_by": "request_header"}
    nobody = explain(site, "/", "GET", None, (), "--source", "192.0.2.7")
    assert nobody["request"]["user"] == "192.0.2.7" and nobody["request"]["identified_by"] == "anonymous"
    assert limit(nobody, "user")["subject"] == "192.0.2.7"
    six = explain(site, "/", "GET", None, (), "--source", "2001:db8::1:2:3:4")
    assert limit(six, "user")["subject"] == "2001:db8::/64"


def test_headers_are_believed_of_a_trusted_proxy_alone(site):
    site.limit("user", burst=1)
    claim = ("--header", "X-Remote-User: alice", "--source")
    trusted = explain(site, "/", "GET", None, (), *claim, site.place.client_address)
    assert (trusted["request"]["identified_by"], trusted["request"]["user"]) == ("request_header", "alice")
    other = explain(site, "/", "GET", None, (), *claim, "192.0.2.7")
    assert (other["request"]["identified_by"], other["request"]["user"]) == ("anonymous", "192.0.2.7")


def test_rules_and_their_order(world):
    site = world.site()
    site.attach("--exempt-path", "/free/*")
    site.weir("limit", "set", "wide", "--key", "total", "--qps", 0, "--burst", 9, "--verb", "list")
    site.weir("limit", "set", "narrow", "--key", "namespace,user", "--qps", 0, "--burst", 1, "--resource", "secrets")
    site.weir("limit", "set", "other", "--key", "total", "--qps", 0, "--burst", 1, "--verb", "delete")
    explained = explain(site, SECRETS.format("a"), user="alice")
    assert [(rule["of"], rule["leads_to"], rule["counts"]) for rule in explained["rules"]] == [
        ('limit "narrow"', "narrow", True), ('limit "wide"', "wide", True)]
    assert [each["limit"] for each in explained["limits"]] == ["narrow", "wide"]
    assert limit(explained, "narrow")["subject"] == "a/alice"
    free = explain(site, "/free/lunch")
    assert (free["decision"], free["exempt_by"]) == ("exempt", "rule")
    assert [rule["leads_to"] for rule in free["rules"]] == ["exempt"]
    assert explain(site, "/healthz")["exempt_by"] == "health_check"
    assert explain(site, "/", user="admin", groups=["system:masters"])["exempt_by"] == "group"


def test_in_flight(site):
    site.weir("limit", "set", "slow", "--key", "user", "--in-flight", 1)
    assert limit(explain(site, "/", user="alice"), "slow")["taken"] == 0
    client = site.client("alice")
    client.ask("/?held=1")
    eventually(lambda: site.limit_of("slow")["in_flight"] == 1, "one is being served")
    explained = explain(site, "/", user="alice")
    assert (explained["decision"], explained["retry_after"]) == ("shed", 1)
    assert {key: limit(explained, "slow")[key] for key in ("in_flight", "taken", "wants", "says")} == {
        "in_flight": 1, "taken": 1, "wants": 1, "says": "refuses"}
    assert explain(site, "/", user="bob")["decision"] == "passed"
    assert site.limit_of("slow")["in_flight"] == 1
    site.server.gate.set()
    assert client.read().status == 200


def test_dry_run_of_a_limit_and_of_a_server(world):
    site = world.site()
    site.attach("--dry-run")
    site.weir("limit", "set", "tight", "--key", "user", "--qps", 0, "--burst", 0, "--dry-run")
    explained = explain(site, "/", user="alice")
    assert (explained["decision"], says(explained)) == ("dry_run_shed", {"tight": "would_refuse"})
    site.limit("user", burst=0)
    explained = explain(site, "/", user="alice")
    assert (explained["decision"], says(explained)) == ("dry_run_shed", {"user": "would_refuse", "tight": "would_refuse"})


def test_paused(site):
    site.limit("total", burst=0)
    site.limit("user", burst=5)
    site.weir("pause")
    explained = explain(site, "/", user="alice")
    assert (explained["decision"], explained["paused"]) == ("passed", True)
    assert says(explained) == {"total": "not_asked", "user": "not_asked"}
    assert all(limit["subject"] is None and "tokens" not in limit for limit in explained["limits"])
    site.weir("resume")
    assert explain(site, "/")["decision"] == "shed"


def test_penalty(site):
    site.weir("limit", "set", "hasty", "--key", "user", "--qps", 0.02, "--burst", 1, "--penalty",
              "exponential:100s..1000s")
    site.limit("total", burst=100)
    client = site.client("alice")
    assert client.get("/") == 200
    before = explain(site, "/", user="alice")
    assert (before["decision"], before["retry_after"]) == ("shed", 100), "the penalty that would begin"
    assert client.get("/") == 429
    after = explain(site, "/", user="alice")
    assert says(after) == {"hasty": "penalised", "total": "not_asked"}
    assert limit(after, "hasty")["failures"] == 1
    assert 90 <= after["retry_after"] <= 100
    assert explain(site, "/", user="bob")["decision"] == "passed"


def test_events(site):
    site.limit("source-and-object", burst=1)
    event = json.dumps({"apiVersion": "v1", "kind": "Event", "source": {"component": "kubelet", "host": "a"},
                        "involvedObject": {"kind": "Pod", "namespace": "a", "name": "web"}})
    path = "/api/v1/namespaces/a/events"
    told = explain(site, path, "POST", "alice", (), "--body", event)
    assert (told["event"], says(told)) == ("source_and_object", {"source-and-object": "admits"})
    assert explain(site, path, "POST", "alice")["event"] == "fallback_cut"


def test_priority_levels(world):
    """Flow schemas: the first that matches counts."""
    site = world.site()
    site.attach()
    site.weir.stop()
    path = site.weir.state_dir / "state.json"
    state = json.loads(path.read_text())
    (server,) = state["servers"].values()
    server["priority_levels"] = [{"name": "low", "shares": 1, "number": 1}, {"name": "free", "exempt": True}]
    server["list_width"] = 10
    server["flow_schemas"] = [
        {"name": "leaders", "level": "free", "precedence": 100, "rules": [{"users": ["leader"]}]},
        {"name": "rest", "level": "low", "precedence": 1000, "rules": [{}]}]
    path.write_text(json.dumps(state))
    site.weir.start()
    free = explain(site, "/", user="leader")
    assert [(rule["of"], rule["leads_to"], rule["counts"]) for rule in free["rules"]] == [
        ('flow schema "leaders"', "nothing", True), ('flow schema "rest"', "level/low", False)]
    assert (free["decision"], free["limits"]) == ("passed", [])
    low = explain(site, PODS.format("a"), user="alice")
    assert [(rule["of"], rule["leads_to"], rule["counts"]) for rule in low["rules"]] == [
        ('flow schema "rest"', "level/low", True)]
    assert {key: limit(low, "level/low")[key] for key in ("in_flight", "taken", "wants")} == {
        "in_flight": 600, "taken": 0, "wants": 10}
    assert limit(explain(site, PODS.format("a") + "?limit=250", user="alice"), "level/low")["wants"] == 3


def test_wrong_words(site):
    refused = site.weir.refused
    assert "PATH is missing behind GET" in site.weir.run("explain", "GET").stderr
    assert "METHOD is missing before /x" in site.weir.run("explain", "/x").stderr
    assert "METHOD and PATH" in site.weir.run("explain").stderr
    for words in (["explain"], ["explain", "GET"], ["explain", "GET", "/a b"], ["explain", "G T", "/"],
                  ["explain", "GET", "/", "--source", "10.0.0.0/8"], ["explain", "GET", "/", "--header", "X"],
                  ["explain", "GET", "/", "--header", "X: a\r\nY: b"], ["explain", "GET", "/", "--group", "dev"],
                  ["explain", "GET", "/", "more"], ["explain", "GET", "/", "--user", "a\nb"]):
        assert site.weir.run(*words).returncode == 2, words
    assert "no server" in refused("explain", "GET", "/", "--server", "other")
    assert "bytes" in refused("explain", "GET", "/" + "x" * 4000)
    assert "not a request that weir can read" in refused("explain", "GET", "/", "--header", "Content-Length: x")


def random_request(chance):
    user = chance.choice(["alice", "bob", "carol", None])
    groups = chance.choice([[], ["dev"], ["dev", "ops"], ["system:masters"]]) if user else []
    method = chance.choice(["GET", "GET", "DELETE"])
    target = chance.choice([SECRETS.format("a"), SECRETS.format("b"), PODS.format("a"), PODS.format("b") + "/web", "/",
                            "/healthz", "/free/lunch", "/api/v1/nodes"])
    return user, groups, method, target


def test_it_says_what_becomes_of_random_requests(world):
    """Rates are slow enough that no token comes in between; Retry-After may be a second less by then."""
    chance = random.Random(4)
    site = world.site()
    site.attach("--exempt-path", "/free/*")
    site.limit("user", qps=0.002, burst=9)
    site.limit("user", "carol", qps=0.003, burst=4)
    site.limit("namespace", qps=0.001, burst=6)
    site.weir("limit", "set", "secrets", "--key", "namespace,user", "--resource", "secrets", "--qps", "0.004", "--burst", 3)
    site.weir("limit", "set", "teams", "--key", "group", "--for-group", "dev", "--for-group", "ops", "--qps", "0.002",
              "--burst", 9, "--penalty", "exponential:700s..2000s")
    site.weir("limit", "set", "deletes", "--key", "source", "--verb", "delete", "--qps", 0, "--burst", 3)
    site.weir("limit", "set", "watched", "--key", "user", "--qps", 0, "--burst", 2, "--dry-run")
    site.weir("limit", "set", "slow", "--key", "user", "--in-flight", 1)
    site.weir("max-in-flight", "--read-only", 5, "--mutating", 5)
    decided = set()
    for _ in range(120):
        user, groups, method, target = random_request(chance)
        before = everything(site)
        told = explain(site, target, method, user, groups, "--source", site.place.client_address)
        again = explain(site, target, method, user, groups, "--source", site.place.client_address)
        assert everything(site) == before
        assert (again["decision"], says(again)) == (told["decision"], says(told))
        client = site.client(user)
        answer = exchange(client, target, method, [f"X-Remote-Group: {group}" for group in groups])
        assert answer.status == (429 if told["decision"] == "shed" else 200), (told, answer)
        if answer.status == 429:
            assert 0 <= told["retry_after"] - int(dict(answer.fields)["retry-after"]) <= 2, (told, answer)
        client.close()
        decided |= {told["decision"]} | {(each["limit"], each["says"]) for each in told["limits"]}
        eventually(lambda: site.limit_of("slow")["in_flight"] == 0, "no request is being served")
    missing = {"passed", "shed", "exempt", ("user", "refuses"), ("namespace", "refuses"), ("secrets", "refuses"),
               ("teams", "penalised"), ("deletes", "refuses"), ("watched", "would_refuse")} - decided
    assert not missing


def exchange(client, target, method, lines):
    """With several headers of one name."""
    head = client.head(target, method)
    client.send(head[:-2] + b"".join(line.encode() + b"\r\n" for line in lines) + b"\r\n")
    return client.read(method)
