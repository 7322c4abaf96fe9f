# SPDX-License-Identifier: GPL-2.0
"""A kube-controller-manager beside its API server, 1.20.2: seen, and refused for a while."""
import datetime
import json

import pytest

from answering import answered
from kube import Program, got
from lib.process import eventually
from seeing import Compared, attach, by_user

MANAGER = "system:kube-controller-manager"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
# It would end itself when it cannot renew its lease in time: a guest stands still for seconds, and it is to be refused for longer.
OPTIONS = ("--controllers=namespace,serviceaccount", "--port=0", "--secure-port=0", "--leader-elect-resource-lock=leases",
           "--leader-elect-lease-duration=90m", "--leader-elect-renew-deadline=80m")
TRIES = 11  # of client-go, each when Retry-After is over; then its caller fails, and may ask again at once


@pytest.fixture(scope="module")
def old(cluster):
    got("kube-controller-manager")
    cluster.start_1_20()
    cluster.allow(MANAGER)
    yield cluster
    cluster.stop()


@pytest.fixture
def manager(world, old):
    """Starts it. One that was before it may have left a lease that is valid for long."""
    def start():
        old.ask("admin", LEASE, 1, "-method", "DELETE")
        started = Program(old.namespace, old.directory, "kube-controller-manager", got("kube-controller-manager"),
                          f"--kubeconfig={old.kubeconfig(MANAGER, old.port)}", *OPTIONS)
        world.at_end(started.end)
        return started
    return start


def make_namespace(kube, name):
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert kube.ask("admin", "/api/v1/namespaces", 1, "-method", "POST", "-body", json.dumps(body))["201"] == 1


def account(namespace):
    """What a controller makes for each namespace."""
    return f"/api/v1/namespaces/{namespace}/serviceaccounts/default"


def works(manager, kube, namespace):
    eventually(lambda: manager.running() and kube.has(account(namespace)), f"{namespace} has its account")


def lease(kube):
    """Who leads, since which change, and when he last said so."""
    spec = json.loads(kube.get(LEASE))["spec"]
    return (spec["holderIdentity"], spec["leaseTransitions"]), spec["renewTime"]


def tries(kube, mark):
    """When the server got requests for the lease that were refused."""
    times = [event["requestReceivedTimestamp"] for event in kube.audited(mark)
             if event["user"]["username"] == MANAGER and event["responseStatus"]["code"] == 429 and
             event["requestURI"].startswith(LEASE)]
    return [datetime.datetime.fromisoformat(time) for time in sorted(times)]


def test_seen(world, old, manager):
    attach(world, old)
    compared = Compared(world, old)
    started = manager()
    make_namespace(old, "seen")
    works(started, old, "seen")
    started.end()
    requests = compared.end()
    assert by_user(requests)[MANAGER] > 0
    assert {about[1] for about in requests if about[0] == MANAGER} >= {"create", "get", "list", "update", "watch"}


def test_refused_for_a_while(world, old, manager):
    """It asks less often, works for nobody meanwhile, and goes on with the same lease."""
    attach(world, old, "answer", "--write-memory")
    compared = Compared(world, old)
    started = manager()
    make_namespace(old, "before")
    works(started, old, "before")

    world.weir("limit", "set", "user", MANAGER, "--qps", 0, "--burst", 0)
    eventually(lambda: tries(old, compared.mark), "it is refused")
    who, renewed = lease(old)
    make_namespace(old, "meanwhile")
    eventually(lambda: len(tries(old, compared.mark)) > 2 * TRIES, "it tries again")
    assert lease(old) == (who, renewed) and not old.has(account("meanwhile"))
    times = tries(old, compared.mark)
    assert (times[-1] - times[0]).total_seconds() >= len(times) - 1 - (len(times) - 1) // TRIES

    world.weir("limit", "delete", "user", MANAGER)
    works(started, old, "meanwhile")
    eventually(lambda: lease(old)[1] > renewed, "the lease is renewed")
    assert lease(old)[0] == who
    started.end()
    compared.end()
    refused = sum(compared.refused.values())
    assert by_user(compared.refused) == {MANAGER: refused}
    counts = world.weir.server("kube")
    assert (counts["shed"], answered(world)) == (refused, refused)
