# SPDX-License-Identifier: GPL-2.0
"""Who is over a limit is alone with that; and a limit that is hit from everywhere at once admits no one too many."""
import collections
import os
import subprocess
import threading
import time

import pytest

from lib.process import PATIENCE_S, eventually
from test_load import in_threads

pytestmark = pytest.mark.together

CONNECTIONS = 64
BURST = 40
TIMES = 50
QUIET = 4


def crowd(site, work):
    """work(client, i) on each of many connections of one client; beside it, others that stay within their limit."""
    noisy = [site.client("noisy") for _ in range(CONNECTIONS)]
    quiet = [site.client(f"quiet-{i}") for i in range(QUIET)]
    heard = {}
    others = threading.Thread(target=lambda: heard.update(
        quiet=in_threads(lambda i: quiet[i].drive(BURST, f"/quiet-{i}"), QUIET)))
    others.start()
    heard["noisy"] = in_threads(lambda i: work(noisy[i], i), CONNECTIONS)
    others.join(PATIENCE_S)
    return collections.Counter(status for each in heard["noisy"] for status in each), heard["quiet"]


@pytest.mark.parametrize("kind", ["loopback", "veth"])
def test_one_client_at_fifty_times_its_limit(world, kind):
    site = world.site(world.place(kind))
    site.attach()
    site.limit("user", burst=BURST)
    each = BURST * TIMES // CONNECTIONS + 1
    noisy, quiet = crowd(site, lambda client, i: client.drive(each, f"/noisy-{i}"))
    assert quiet == [[200] * BURST] * QUIET
    assert noisy == {200: BURST, 429: CONNECTIONS * each - BURST}
    site.check(passed=(QUIET + 1) * BURST, shed=CONNECTIONS * each - BURST)


def test_one_client_with_fifty_times_its_seats(world):
    """Of a server that has seats for all, one client's slow requests take no more than his own."""
    site = world.site(world.veth())
    site.attach()
    site.weir("limit", "set", "slow", "--key", "user", "--in-flight", 1)
    site.weir("max-in-flight", "--read-only", QUIET + 1, "--mutating", 1)
    noisy, quiet = crowd(site, lambda client, i: client.drive(8, "/slow?delay_ms=20&n="))
    assert quiet == [[200] * BURST] * QUIET
    assert noisy[200] >= 1 and noisy[429] > noisy[200] and set(noisy) == {200, 429}
    assert site.limit_of("slow")["highest"] == 1
    eventually(lambda: site.limit_of("slow")["in_flight"] == 0, "every seat has been given back")


def test_all_cpus_at_one_bucket(world):
    """Each CPU has a load generator of its own, whose packets it handles itself; all are of one user."""
    place = world.veth()
    site = world.site(place, world.real_server("nginx", place))
    site.attach()
    site.limit("user", burst=1000)
    url = f"http://{place.address}:{site.server.port}/w"
    runs = [subprocess.Popen(place.client_ns.command("taskset", "-c", str(cpu), "wrk", "-t1", "-c32", "-d2s", "-H",
                                                     "X-Remote-User: hot", url),
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for cpu in sorted(os.sched_getaffinity(0))]
    for run in runs:
        output, _ = run.communicate(timeout=PATIENCE_S)
        assert run.returncode == 0, output
    site.check(passed=1000, shed=site.weir.counts()["shed"])
    assert site.weir.counts()["shed"] > 1000


def test_no_more_at_once_than_there_are_seats(site):
    """As the server sees it, from all connections at once."""
    seats = 3
    site.weir("limit", "set", "few", "--key", "total", "--in-flight", seats)
    serving, most, lock = 0, 0, threading.Lock()
    answer = site.server.answer

    def counted(connection, request):
        nonlocal serving, most
        with lock:
            serving += 1
            most = max(most, serving)
        time.sleep(0.005)
        with lock:
            serving -= 1
        return answer(connection, request)

    site.server.answer = counted
    clients = [site.client(f"u{i}") for i in range(32)]
    heard = collections.Counter(status for each in in_threads(lambda i: clients[i].drive(20), 32) for status in each)
    assert most <= seats and heard[200] >= seats and heard[200] + heard[429] == 32 * 20
    assert site.limit_of("few")["highest"] == seats
    eventually(lambda: site.limit_of("few")["in_flight"] == 0, "every seat has been given back")
