# SPDX-License-Identifier: GPL-2.0
"""Each kind of limit, rule, exemption and level has requests that are seen inside a server as it has those of packets."""
import json

import pytest

from lib.inside import Open, attach, of_limit
from lib.process import eventually

pytestmark = pytest.mark.together

DEV, PROD, LIST, WATCH, LOG = "/get/dev/pods", "/get/prod/pods", "/list/dev/pods", "/watch/dev/pods", "/get/dev/pods/x/log"

# Of a limit with one token: its options, the requests one after the other, and which of them it has no token for.
LIMITS = {
    "total": (["total"], [(DEV, "alice"), (PROD, "bob")], [1]),
    "namespace": (["namespace"], [(DEV, "alice"), (PROD, "alice"), (DEV, "bob"), ("/livezz", "bob")], [2]),
    "user": (["user"], [(DEV, "alice"), (DEV, "bob"), (PROD, "alice")], [2]),
    "one user": (["user", "alice"], [(DEV, "alice"), (DEV, "bob"), (DEV, "bob"), (DEV, "alice")], [3]),
    "group": (["g", "--key", "group", "--for-group", "all"], [(DEV, "alice"), (DEV, "bob")], [1]),
    "source": (["s", "--key", "source"], [(DEV, "alice"), (PROD, "bob")], [1]),
    "combined": (["c", "--key", "namespace,user"], [(DEV, "alice"), (PROD, "alice"), (DEV, "bob"), (DEV, "alice")], [3]),
    "verb": (["v", "--key", "total", "--verb", "list"], [(DEV, "alice"), (LIST, "alice"), (DEV, "alice"), (LIST, "bob")], [3]),
    "resource": (["r", "--key", "total", "--resource", "pods"], [(DEV, "a"), ("/get/dev/events", "a"), (DEV, "a")], [2]),
    "subresource": (["r", "--key", "total", "--resource", "pods/log"], [(DEV, "a"), (LOG, "a"), (DEV, "a"), (LOG, "a")], [3]),
    "rule for a namespace": (["n", "--key", "total", "--for-namespace", "dev"], [(DEV, "a"), (PROD, "a"), (DEV, "b")], [2]),
    "rule for a user": (["u", "--key", "total", "--for-user", "bob"], [(DEV, "bob"), (DEV, "alice"), (PROD, "bob")], [2]),
    "rule for a group": (["u", "--key", "total", "--for-group", "all"], [(DEV, "bob"), (DEV, "alice")], [1]),
    "rule for a source": (["s", "--key", "total", "--source", "127.0.0.0/8"], [(DEV, "a"), (DEV, "b")], [1]),
    "rule for another source": (["s", "--key", "total", "--source", "10.0.0.0/8"], [(DEV, "a"), (DEV, "b")], []),
    "long-running": (["l", "--key", "user", "--long-running", "yes"], [(WATCH, "a"), (DEV, "a"), (LOG, "a"), (LOG, "b")], [2]),
    "not a resource": (["l", "--key", "total", "--non-resource"], [("/a", "a"), (DEV, "a"), ("/b", "b")], [2]),
}


@pytest.fixture
def api(world, serve):
    server = serve("apiserver")
    attach(world, server)
    return server


@pytest.mark.parametrize("kind", LIMITS)
def test_limits(world, api, kind):
    words, requests, over = LIMITS[kind]
    assert world.weir.run("limit", "set", *words, "--qps", 0, "--burst", 1).stderr == ""
    trace = world.trace()
    for path, user in requests:
        api.get(path, user)
    decisions = [request["decision"] for request in trace.end()]
    assert decisions == ["dry_run_shed" if n in over else "passed" for n in range(len(requests))]
    assert of_limit(world, words[0], "dry_run_refused") == len(over)


def test_who_is_over_a_broader_limit_keeps_the_token_of_the_narrower(world, api):
    """Nobody traces: then requests are decided in another way where each limit has a token."""
    world.weir("limit", "set", "user", "--qps", 0, "--burst", 5)
    world.weir("limit", "set", "total", "--qps", 0, "--burst", 2)
    api.get(DEV, "alice", 4)
    assert (of_limit(world, "user", "admitted"), of_limit(world, "total", "admitted")) == (2, 2)
    world.weir("limit", "delete", "total")
    api.get(DEV, "alice", 4)
    status = world.weir.server()
    assert (of_limit(world, "user", "admitted"), of_limit(world, "user", "dry_run_refused")) == (5, 1)
    assert (status["passed"], status["dry_run_shed"]) == (5, 3)


THROTTLE = """\
apiVersion: weir/v1
kind: Throttle
metadata: {name: web}
spec:
  listen: ['*:8443']
  netns: %s
  inside: see
"""


@pytest.fixture
def apply(world, serve, tmp_path):
    """Of a Throttle, what is more than where the server is. Says what is warned of."""
    server = serve("apiserver")

    def apply(**more):
        path = tmp_path / "web.yaml"
        path.write_text(THROTTLE % server.place.server_ns.path + "".join(f"  {name}: {json.dumps(more[name])}\n" for name in more))
        world.weir("apply", "-f", path)
        return world.weir.run("check", "-f", path).stderr
    apply.server = server
    return apply


def test_exemptions(world, apply, tmp_path):
    apply(limits=[{"name": "total", "qps": 0, "burst": 0}], exempt=[{"users": ["*"], "verbs": ["get"], "resources": ["pods"]}])
    exported = tmp_path / "exported.yaml"
    exported.write_text(world.weir("export"))
    assert "does nothing" not in world.weir.run("check", "-f", exported).stderr
    apply.server.get(DEV, "alice", 3)
    apply.server.get(LIST, "alice", 2)
    status = world.weir.server()
    assert (status["exempt"], status["dry_run_shed"]) == (3, 2)


def test_levels(world, apply):
    apply(concurrency=2, priorityLevels=[{"name": "few", "shares": 1}, {"name": "rest", "shares": 1}],
          flowSchemas=[{"name": "bob", "level": "few", "precedence": 10, "rules": [{"users": ["bob"]}]},
                       {"name": "rest", "level": "rest", "precedence": 20, "rules": [{"users": ["*"]}]}])
    server = apply.server
    waiting = [Open(world, server, f"{DEV}?wait", user) for user in ("alice", "bob")]
    eventually(lambda: of_limit(world, "level/few", "in_flight") == of_limit(world, "level/rest", "in_flight") == 1, "both wait")
    assert server.get(DEV, "bob", 2) + server.get(DEV, "alice") == [f"200 HTTP/2.0 {DEV}"] * 3
    assert (of_limit(world, "level/few", "dry_run_refused"), of_limit(world, "level/rest", "dry_run_refused")) == (2, 1)
    for request in waiting:
        request.close()
    eventually(lambda: of_limit(world, "level/few", "in_flight") == of_limit(world, "level/rest", "in_flight") == 0, "seats are free")


def test_in_flight_as_kube_apiserver_limits_it(world, apply):
    apply(maxInFlight={"readOnly": 1, "mutating": 1})
    Open(world, apply.server, f"{DEV}?wait", "alice")
    eventually(lambda: of_limit(world, "read-only-in-flight", "in_flight") == 1, "it waits")
    for path in DEV, "/create/dev/pods", WATCH:
        apply.server.get(path, "bob")
    assert (of_limit(world, "read-only-in-flight", "dry_run_refused"), of_limit(world, "mutating-in-flight", "admitted")) == (1, 1)


@pytest.mark.parametrize("mode", ["see", "hold"])
def test_ipv6(world, serve, mode):
    server = serve("apiserver", world.loopback(family=6), port=9443)
    attach(world, server, mode=mode)
    world.weir("limit", "set", "s", "--key", "source", "--qps", 1000, "--burst", 1000)
    trace = world.trace()
    assert server.get(DEV, "alice", 2) == [f"200 HTTP/2.0 {DEV}"] * 2
    assert [(request["user"], request["client"]) for request in trace.end()] == [("alice", server.place.client_address)] * 2
    assert of_limit(world, "s", "admitted") == 2
