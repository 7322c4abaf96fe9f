# SPDX-License-Identifier: GPL-2.0
"""The limit source-and-object: Kubernetes Events are told apart by who reports them and what they are about."""
import json

import pytest

pytestmark = pytest.mark.together

CORE = "/api/v1/namespaces/shop/events"
EVENTS = "/apis/events.k8s.io/v1/namespaces/shop/events"
SOURCE = {"component": "kubelet", "host": "node-3"}


def core_event(name, source=None, **more):
    """As client-go writes it."""
    return json.dumps({
        "kind": "Event", "apiVersion": "v1", "metadata": {"name": f"{name}.17", "namespace": "shop"},
        "involvedObject": {"kind": "Pod", "namespace": "shop", "name": name, "uid": f"uid-of-{name}",
                           "apiVersion": "v1", "resourceVersion": "941", "fieldPath": "spec.containers{web}"},
        "reason": "BackOff", "message": "Back-off restarting failed container", "source": source or SOURCE,
        "firstTimestamp": "2026-01-01T10:00:00Z", "lastTimestamp": None, "count": 3, "type": "Warning",
        "reportingComponent": "", "reportingInstance": "", **more}, separators=(",", ":")).encode()


def new_event(name):
    """The same event in the newer API, its members in another order."""
    return json.dumps({
        "deprecatedSource": SOURCE, "note": "Back-off", "reportingController": "kubelet", "action": "Restarting",
        "regarding": {"apiVersion": "v1", "uid": f"uid-of-{name}", "name": name, "namespace": "shop", "kind": "Pod"},
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": f"{name}.18"}}, indent=2).encode()


def keys(site):
    """What events were told apart by, as far as there were any."""
    samples = site.weir.metrics()["weir_events_total"]
    return {key: count for (key, _), count in samples.items() if count}


def test_a_noisy_object_is_alone_with_it(site):
    site.limit("source-and-object", burst=3)
    client, other = site.client("alice"), site.client("bob")
    assert client.exchange(CORE, "POST", core_event("noisy")).status == 200
    assert other.exchange(f"{CORE}/noisy.17", "PUT", core_event("noisy", count=4, message="\u00e9")).status == 200
    assert client.exchange(EVENTS, "POST", new_event("noisy")).status == 200
    for _ in range(5):
        assert client.exchange(CORE, "POST", core_event("noisy")).status == 429
    assert other.exchange(EVENTS, "POST", new_event("noisy")).status == 429
    assert client.exchange(CORE, "POST", core_event("quiet")).status == 200
    assert client.exchange(CORE, "POST", core_event("noisy", {"component": "scheduler"})).status == 200
    assert client.get(CORE) == 200
    site.check(passed=6, shed=6)
    assert keys(site) == {"source_and_object": 11}
    assert site.weir.metrics()["weir_shed_total"]["source-and-object", "rate", "web"] == 6
    assert site.status()["top"] == [{"limit": "source-and-object", "subject": "Pod/shop/noisy", "passed": 3, "shed": 6,
                                     "dry_run_shed": 0}]


def test_dry_run_requests_are_free(site):
    site.limit("source-and-object", burst=1)
    client = site.client()
    for _ in range(3):
        assert client.exchange(f"{CORE}?dryRun=All", "POST", core_event("a")).status == 200
    assert client.exchange(CORE, "POST", core_event("a")).status == 200
    assert client.exchange(CORE, "POST", core_event("a")).status == 429
    assert keys(site) == {"source_and_object": 2}


def test_what_cannot_be_told_apart_is_the_users(site):
    site.limit("source-and-object", burst=4)
    client = site.client("alice")
    protobuf = b"k8s\x00\x0a\x0b\x0a\x02v1\x12\x05Event\x12\x00\x1a\x00"
    assert client.exchange(CORE, "POST", protobuf, Content_Type="application/vnd.kubernetes.protobuf").status == 200
    assert client.exchange(f"{CORE}/a.17", "PATCH", b'{"count":5}').status == 200
    assert client.exchange(CORE, "POST", chunks=[core_event("a")]).status == 200
    assert client.exchange(CORE, "POST", core_event("a", message="m" * 4096)).status == 200
    assert client.exchange(f"{CORE}/a.17", "PATCH", b'{"count":6}').status == 429
    assert client.exchange(CORE, "POST", core_event("a")).status == 200
    assert site.client("bob").exchange(CORE, "POST", protobuf).status == 200
    assert keys(site) == {"fallback_unreadable": 2, "fallback_patch": 2, "fallback_cut": 2, "source_and_object": 1}
    assert site.status()["top"] == [{"limit": "source-and-object", "subject": "alice", "passed": 4, "shed": 1,
                                     "dry_run_shed": 0}]


def test_a_body_behind_its_head(site):
    """The head alone is judged, and its body passes with it."""
    site.limit("source-and-object", burst=1)
    client = site.client("alice")
    body = core_event("a")
    client.send(client.head(CORE, "POST", Content_Length=len(body)))
    client.settle()
    client.send(body)
    assert client.check(client.read("POST"), CORE, "POST", body) == 200
    assert keys(site) == {"fallback_cut": 1}
    assert client.exchange(CORE, "POST", body).status == 200
    site.check(passed=2, shed=0)


@pytest.mark.parametrize("family", [4, 6])
def test_another_machine(world, family):
    """Over a real MTU, and one event is longer than that."""
    site = world.site(world.veth(family))
    site.attach()
    site.limit("source-and-object", burst=2)
    client = site.client("alice")
    assert [client.exchange(CORE, "POST", core_event("a")).status for _ in range(4)] == [200, 200, 429, 429]
    assert client.exchange(CORE, "POST", core_event("b", message="m" * 900)).status == 200
    assert client.exchange(CORE, "POST", core_event("a")).status == 429
    site.check(passed=3, shed=3)
    assert keys(site) == {"source_and_object": 6}


def test_the_limit_is_one_for_all(site):
    site.limit("source-and-object", qps=5, burst=10)
    (limit,) = site.weir.json("limit", "list")["limits"]
    assert (limit["name"], limit["qps"], limit["burst"]) == ("source-and-object", 5, 10)
    assert not limit.get("overrides")
    assert "the same for all" in site.weir.refused("limit", "set", "source-and-object", "Pod/shop/a", "--qps", 1,
                                                   "--burst", 1, status=2)
    site.weir("limit", "delete", "source-and-object")
    assert site.weir.json("limit", "list") == {"limits": []}
    assert site.client().exchange(CORE, "POST", core_event("a")).status == 200
    assert keys(site) == {}
