# SPDX-License-Identifier: GPL-2.0
"""What LISTs take of a priority level's seats: as Kubernetes suggests the levels, and no more than one while they are small."""
import json
import threading

import pytest

from lib.process import eventually

pytestmark = pytest.mark.together

PODS = "/api/v1/namespaces/{}/pods"
GROUP = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1beta1"}
EVERYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}


def level(name, shares, **queuing):
    response = {"type": "Queue", "queuing": queuing} if queuing else {"type": "Reject"}
    limited = {"assuredConcurrencyShares": shares, "limitResponse": response}
    return {**GROUP, "kind": "PriorityLevelConfiguration", "metadata": {"name": name},
            "spec": {"type": "Limited", "limited": limited}}


def schema(name, its_level, precedence, group):
    subject = {"kind": "Group", "group": {"name": group}}
    return {**GROUP, "kind": "FlowSchema", "metadata": {"name": name},
            "spec": {"priorityLevelConfiguration": {"name": its_level}, "matchingPrecedence": precedence,
                     "distinguisherMethod": {"type": "ByUser"},
                     "rules": [{"subjects": [subject], "resourceRules": [EVERYTHING]}]}}


# As a Kubernetes 1.20 has them, but for the schemas that no request here is of.
SUGGESTED = [
    level("system", 30, queues=64, handSize=6, queueLengthLimit=50),
    level("leader-election", 10, queues=16, handSize=4, queueLengthLimit=50),
    level("workload-high", 40, queues=128, handSize=6, queueLengthLimit=50),
    level("workload-low", 100, queues=128, handSize=6, queueLengthLimit=50),
    level("global-default", 20, queues=128, handSize=6, queueLengthLimit=50),
    schema("service-accounts", "workload-low", 9000, "system:serviceaccounts"),
    schema("global-default", "global-default", 9900, "system:unauthenticated"),
    schema("global-default-too", "global-default", 9900, "system:authenticated"),
]


def throttle(**spec):
    return {"apiVersion": "weir/v1", "kind": "Throttle", "metadata": {"name": "web"}, "spec": spec}


@pytest.fixture
def apply(site, tmp_path):
    def put(*objects):
        path = tmp_path / "policy.yaml"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        done = site.weir.run("apply", "-f", path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return put


def hold(site, target, n):
    """n clients ask for it, one after the other, and get no answer: how many requests come to the server?"""
    target += "&held=1" if "?" in target else "?held=1"
    refused = 0
    for i in range(n):
        client, served = site.client("alice"), site.server.served()
        client.ask(target)
        answers = []
        threading.Thread(target=lambda: answers.append(client.read().status), daemon=True).start()
        eventually(lambda: answers or site.server.served() > served, f"request {i} is decided")
        refused += answers == [429]
    return n - refused


def release(site):
    site.server.gate.set()
    eventually(lambda: site.limit_of("level/all")["in_flight"] == 0, "all seats are free")


def seats(site, target):
    return site.weir.json("explain", "GET", target, "--user", "alice")["list"]


def test_small_lists_are_served(site, apply):
    said = apply(*SUGGESTED)
    clients = [site.client("alice") for _ in range(30)]
    threads = [threading.Thread(target=lambda mine: [mine.get(PODS.format("a")) for _ in range(30)], args=(client,))
               for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert site.heard(200) == 900
    assert site.limit_of("level/global-default")["admitted"] == 900
    assert site.limit_of("level/global-default")["refused"] == 0
    assert 'priority level "global-default": 59 of 600 seats: 59 LISTs at once, or 5 wide ones' in said


def test_queues_are_missed_once(site, apply, tmp_path):
    apply(*SUGGESTED)
    checked = json.loads(site.weir.run("check", "-f", tmp_path / "policy.yaml", "--json").stdout)
    assert [problem["message"] for problem in checked["problems"]] == [
        "queues are not honoured yet: what finds no seat is rejected (of 5 priority levels)"]
    assert {"level": "catch-all", "seats": 15, "of": 600, "lists": 15, "wide_lists": 1} in checked["levels"]


OWN = {"concurrency": 30, "priorityLevels": [{"name": "all", "shares": 30}, {"name": "catch-all", "shares": 0}],
       "flowSchemas": [{"name": "all", "level": "all", "precedence": 10, "rules": [{"users": ["*"]}]}]}


@pytest.mark.parametrize("form", ["", "&chunked=1"])
def test_wide_lists_take_ten_seats(site, apply, form):
    apply(throttle(**OWN))
    wide = PODS.format("wide") + "?size=2000000" + form
    assert seats(site, wide) == {"seats": 1, "why": "unknown", "bytes": 0}
    assert site.client("alice").get(wide) == 200
    known = seats(site, wide)
    assert (known["seats"], known["why"]) == (10, "learned") and known["bytes"] >= 2000000
    assert "LIST       10 seats: its latest answers had " in site.weir("explain", "GET", wide, "--user", "alice")
    assert hold(site, PODS.format("wide"), 4) == 3
    assert hold(site, PODS.format("small"), 1) == 0
    release(site)
    assert site.limit_of("level/all")["highest"] == 30
    assert site.client("alice").get(PODS.format("small")) == 200


def test_as_many_small_ones_as_seats(site, apply):
    apply(throttle(**OWN))
    assert site.client("alice").get(PODS.format("wide") + "?size=2000000") == 200
    assert hold(site, PODS.format("small"), 31) == 30
    release(site)


def test_what_the_policy_says(site, apply):
    apply(throttle(**OWN, listWidth=6))
    assert seats(site, PODS.format("a")) == {"seats": 6, "why": "policy", "bytes": 0}
    assert hold(site, PODS.format("a"), 6) == 5
    release(site)
    assert "listWidth: 6" in site.weir("export")
    apply(throttle(**OWN, listObjectBytes=10))
    assert "unchanged" in apply(throttle(**OWN, listObjectBytes=10))
    assert site.client("alice").get(PODS.format("b") + "?size=4500") == 200
    assert seats(site, PODS.format("b"))["seats"] == 5
