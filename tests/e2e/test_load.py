# SPDX-License-Identifier: GPL-2.0
"""Many connections at once: the totals are exact all the same."""
import collections
import re
import threading

import pytest

from lib.process import PATIENCE_S

pytestmark = pytest.mark.together

CONNECTIONS = 200
EACH = 20
BURST = 1000


def in_threads(work, n):
    """Runs work(i) n times at once; returns what each returned."""
    results = [None] * n

    def run(i):
        results[i] = work(i)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert None not in results, "a client has failed"
    return results


def check_many(site):
    site.limit("total", burst=BURST)
    clients = [site.client(f"user-{i}") for i in range(CONNECTIONS)]
    heard = in_threads(lambda i: clients[i].drive(EACH, f"/{i}"), CONNECTIONS)
    total = collections.Counter(status for statuses in heard for status in statuses)
    assert total == {200: BURST, 429: CONNECTIONS * EACH - BURST}
    site.check(passed=BURST, shed=CONNECTIONS * EACH - BURST)
    assert site.status()["connections"] == CONNECTIONS
    assert not site.unanswered() and not site.unread()
    targets = site.server.targets()
    assert len(set(targets)) == len(targets)


def test_many_connections(site):
    check_many(site)


def test_many_connections_over_veth(world):
    place = world.veth()
    site = world.site(place, world.real_server("nginx", place))
    site.attach()
    check_many(site)


def test_users_of_their_own(site):
    """Each of many users at once gets his burst, no more and no less."""
    site.limit("user", burst=7)
    clients = [site.client(f"user-{i}") for i in range(40)]
    heard = in_threads(lambda i: clients[i].drive(EACH), 40)
    assert heard == [[200] * 7 + [429] * (EACH - 7)] * 40
    site.check(passed=40 * 7, shed=40 * (EACH - 7))


def test_one_user_on_many_connections(site):
    site.limit("user", "alice", burst=55)
    clients = [site.client("alice") for _ in range(20)]
    heard = in_threads(lambda i: clients[i].drive(EACH), 20)
    assert sum(statuses.count(200) for statuses in heard) == 55
    site.check(passed=55, shed=20 * EACH - 55)


def test_wrk(world):
    """wrk gives up what is under way when its time is over: it may have heard of fewer sheds than there were."""
    place = world.veth()
    site = world.site(place, world.real_server("nginx", place))
    site.attach()
    site.limit("total", burst=500)
    output = place.client_ns.run("wrk", "-t2", "-c50", "-d2s", f"http://{place.address}:{site.server.port}/w")
    assert "Socket errors" not in output, output
    heard = int(re.search(r"(\d+) requests in", output)[1])
    refused = int(re.search(r"Non-2xx or 3xx responses: (\d+)", output)[1])
    counts = site.weir.counts()
    assert heard - refused == 500
    assert refused <= counts["shed"] <= refused + 50
    site.check(passed=500, shed=counts["shed"])
