# SPDX-License-Identifier: GPL-2.0
"""Requests are charged inside a Go server, and the connections of users who are over a limit are held (attach --inside hold)."""
import json
import subprocess
import time

import pytest

from lib.client import Client as WireClient
from lib.inside import Open, attach, of_limit, program
from lib.loss import DATA_RECORD, Loss
from lib.process import end, eventually
from lib.tls import TlsClient

pytestmark = pytest.mark.together

PATH = "/get/dev/pods"
ALICE, BOB = "127.0.0.1", "127.0.0.7"  # the addresses they come from


class Client:
    """Asks n times, and may be waited for. users: in turns."""

    def __init__(self, world, server, *users, n, source=ALICE, **options):
        words = [word for name, value in options.items() for word in (f"-{name}", str(value))]
        command = server.place.client_ns.command(
            program("client"), "-from", source, "-header", "X-User=" + "|".join(users), "-n", str(n), *words,
            f"https://{server.address}{PATH}")
        self.began = time.monotonic()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        world.at_end(self.close)

    def counts(self):
        """Answers by status, and how long they took."""
        counts = json.loads(self.process.communicate(timeout=120)[0])
        return counts, time.monotonic() - self.began

    def close(self):
        if self.process.poll() is None:
            end(self.process)


@pytest.fixture
def held(world, serve):
    def start(qps, burst, *options):
        server = serve("apiserver")
        attach(world, server, mode="hold", options=options)
        done = world.weir.run("limit", "set", "user", "--qps", qps, "--burst", burst)
        assert done.returncode == 0 and bool(done.stderr) == (qps == 0), done.stderr  # with no tokens, it warns that requests pass
        return server
    return start


def packets(world, reason):
    return world.weir.metrics()["weir_packets_total"].get((reason, "web"), 0)


def owed(world):
    return world.weir.server()["seen_inside"].get("owed", 0)


def kept(world, by):
    """What the history has of alice, or of all: the requests, and those that are paid for later."""
    rows = world.weir.json("history", "web", "--by", by, "--sum", *(("--filter", "alice") if by == "user" else ()))["rows"]
    return [sum(row[name] for row in rows) for name in ("requests", "held")]


@pytest.mark.parametrize("streams", [1, 4])
def test_a_user_gets_the_limit(world, held, streams):
    """All is answered, and no sooner than the limit allows, but for the flight that is on its way when the tokens end."""
    server = held(5, 5)
    before = kept(world, "user"), kept(world, "server")
    assert world.weir.server()["inside"]["text"].startswith("hold (apiserver, go1.")
    assert "): over a limit requests pass, and their connections wait" in world.weir("status")
    counts, took = Client(world, server, "alice", n=60, streams=streams).counts()
    assert counts == {"200": 60, "connections": 1}
    assert took >= (60 - 5 - streams) / 5
    status = world.weir.server()
    assert status["seen_inside"]["seen"] == status["passed"] == 60
    assert (status["shed"], status["dry_run_shed"]) == (0, 0)
    assert owed(world) >= 60 - 5 - 5 * took
    assert packets(world, "held_record") > 0
    assert of_limit(world, "user", "admitted") == 60
    heads, cells = (line.split() for line in world.weir("status", "web").splitlines()[:2])
    assert (heads[-1], int(cells[-1])) == ("HELD", owed(world))
    rows = world.weir.json("top", "--once", "--interval", "100ms", "--by", "refusal")["rows"]
    assert [(row["user"], row["limit"], row["held"], row["refused"]) for row in rows] == [("alice", "user", owed(world), 0)]
    assert kept(world, "user") == [before[0][0] + 60, before[0][1] + owed(world)]
    assert kept(world, "server") == [before[1][0] + 60, before[1][1] + owed(world)]


def test_ipv6(world, serve):
    server = serve("apiserver", world.loopback(family=6), port=9443)
    attach(world, server, mode="hold")
    world.weir("limit", "set", "user", "--qps", 5, "--burst", 5)
    counts, took = Client(world, server, "alice", n=20, source="::1").counts()
    assert counts == {"200": 20, "connections": 1}
    assert took >= (20 - 5 - 1) / 5
    assert packets(world, "held_record") > 0


def explained(world, user):
    """What becomes of this user's next request."""
    question = "explain", "--server", "web", "GET", PATH, "--user", user
    said = world.weir.json(*question)
    return said["lane"], said["decision"], said.get("owed", 0), world.weir(*question)


def test_others_are_not_held(world, held):
    """Alice is in debt for long; who comes from another address is answered at once, and on new connections as well."""
    server = held("0.05", 1, "--hold-max", "25")
    assert explained(world, "alice")[:3] == ("hold", "passed", 0)
    alice = Client(world, server, "alice", n=9)
    eventually(lambda: owed(world) == 1, "alice is in debt")
    lane, decision, seconds, text = explained(world, "alice")
    assert (lane, decision) == ("hold", "passed") and 0 < seconds <= 40  # 20 for each
    assert "LANE       hold: " in text and "DECISION   passed: its connection waits until it has paid, in " in text
    assert explained(world, "bob")[:3] == ("hold", "passed", 0)
    for _ in range(3):
        assert Client(world, server, "bob", n=1, source=BOB).counts()[0] == {"200": 1, "connections": 1}
    assert alice.process.poll() is None


def waits(world, seen):
    """The client's next bytes have been held back at least twice, and so many requests were seen."""
    eventually(lambda: packets(world, "held_record") >= 2, "it is held")
    assert world.weir.server()["seen_inside"]["seen"] == seen


def test_new_connections_wait(world, held):
    """Those of the address whose user is in debt; the way off frees them."""
    server = held("0.02", 1, "--hold-max", "25")
    assert Client(world, server, "alice", n=2).counts()[0] == {"200": 2, "connections": 1}
    assert owed(world) == 1
    alice = Client(world, server, "alice", n=1)
    waits(world, 2)
    assert Client(world, server, "bob", n=1, source=BOB).counts()[0] == {"200": 1, "connections": 1}
    world.weir("pause", "web")
    assert alice.counts()[0] == {"200": 1, "connections": 1}


def test_debts_end_where_the_server_is_detached(world, held):
    """Attached anew it takes the same place in the kernel's maps, and finds nobody in debt there."""
    server = held("0.02", 1, "--hold-max", "25")
    assert Client(world, server, "alice", n=2).counts()[0] == {"200": 2, "connections": 1}
    assert owed(world) == 1
    world.keep()
    world.weir("detach", "web", "--force")
    attach(world, server, mode="hold", options=("--hold-max", "25"))
    assert world.weir("limit", "set", "user", "--qps", "0.02", "--burst", 1) == \
        'server "web": limit user is set; inside nobody is refused: the connections of who is over it wait\n'
    assert Client(world, server, "alice", n=1).counts()[0] == {"200": 1, "connections": 1}
    assert packets(world, "held_record") == 0


def test_another_namespace_is_not_held(world, held):
    """Who is in debt here asks, from the same address, another server on the same port, which is nobody's business."""
    server = held("0.02", 1, "--hold-max", "25")
    assert Client(world, server, "alice", n=2).counts()[0] == {"200": 2, "connections": 1}
    before = packets(world, "held_record")
    elsewhere = world.loopback_elsewhere()
    world.echo(elsewhere, 8443)
    assert WireClient(elsewhere, 8443).get("/elsewhere") == 200
    assert packets(world, "held_record") == before


def test_an_address_of_several_users(world, held):
    """Who is not in debt is not kept waiting by another user of his address."""
    server = held("0.02", 2, "--hold-max", "25")
    assert Client(world, server, "bob", n=1).counts()[0]["200"] == 1
    assert Client(world, server, "alice", n=3).counts()[0]["200"] == 3
    assert owed(world) == 1
    assert Client(world, server, "bob", n=1).counts()[0]["200"] == 1
    assert packets(world, "hold_shared") > 0
    assert packets(world, "held_record") == 0


def test_a_connection_of_several_users(world, serve):
    """Such as a front proxy's: it is not held while one of them is within his limit."""
    server = serve("apiserver")
    attach(world, server, mode="hold", options=("--exempt-user", "bob"))
    world.weir("limit", "set", "user", "--qps", "0.02", "--burst", 1)
    assert Client(world, server, "alice", "bob", n=10).counts()[0] == {"200": 10, "connections": 1}
    assert packets(world, "hold_shared") > 0
    assert packets(world, "held_record") == 0
    status = world.weir.server()
    assert (status["exempt"], owed(world), status["dry_run_shed"]) == (5, 1, 3)


def test_all_users_of_a_connection_are_in_debt(world, held):
    server = held("0.02", 1, "--hold-max", "25")
    Client(world, server, "alice", "bob", n=9)
    waits(world, 4)
    assert owed(world) == 2


def test_nobody_frees_a_connection(world, held):
    """Requests without a user are those of their address: with them, anyone could free himself."""
    server = held("0.02", 3, "--hold-max", "25")
    world.weir("limit", "set", "user", "alice", "--qps", "0.02", "--burst", 1)
    Client(world, server, "alice", "system:anonymous", n=9)
    waits(world, 3)
    assert packets(world, "hold_shared") == 0


def test_the_longest_hold(world, held):
    """Who has no token to come passes after --hold-max, and is counted as what the limit would have refused."""
    server = held(0, 1, "--hold-max", "1")
    counts, took = Client(world, server, "alice", n=4).counts()
    assert counts == {"200": 4, "connections": 1}
    assert took >= 2
    assert world.weir.server()["dry_run_shed"] == 3
    assert packets(world, "held_record") > 0
    assert of_limit(world, "user", "refused") == 0
    assert of_limit(world, "user", "dry_run_refused") == 3


def test_no_seat_is_no_excuse(world, held):
    """What finds no seat passes, and owes its token all the same."""
    server = held(5, 5)
    assert world.weir.run("limit", "set", "open", "--key", "user", "--in-flight", 1).returncode == 0
    Open(world, server, "/watch/dev/pods?wait", "alice")
    eventually(lambda: of_limit(world, "open", "in_flight") == 1, "the seat is taken")
    assert Client(world, server, "alice", n=4).counts()[0]["200"] == 4
    assert of_limit(world, "open", "dry_run_refused") == 4
    assert of_limit(world, "user", "admitted") == 5


def test_less_is_held_from_now_on(world, serve, tmp_path):
    """A shorter --hold-max ends what has waited for longer."""
    server = serve("apiserver")
    policy = tmp_path / "web.yaml"
    text = "apiVersion: weir/v1\nkind: Throttle\nmetadata: {name: web}\nspec:\n  listen: ['*:8443']\n" \
        f"  netns: {server.place.server_ns.path}\n  inside: hold\n  limits: [{{name: user, qps: 0.02, burst: 1}}]\n"
    policy.write_text(text + "  holdMax: 25\n")
    world.weir("apply", "-f", policy)
    alice = Client(world, server, "alice", n=3)
    waits(world, 2)
    policy.write_text(text + "  holdMax: 1\n")
    world.weir("apply", "-f", policy)
    assert alice.counts()[0]["200"] == 3
    assert packets(world, "hold_longest") > 0
    assert "holdMax" in world.weir("export")
    policy.write_text(text + "  holdMax: 26\n")
    assert "holdMax" in world.weir.refused("apply", "-f", policy)


def test_a_dry_run_holds_nobody(world, held):
    server = held("0.02", 1, "--dry-run")
    assert Client(world, server, "alice", n=5).counts()[0]["200"] == 5
    assert world.weir.server()["dry_run_shed"] == 4
    assert (packets(world, "held_record"), owed(world)) == (0, 0)


def test_a_limit_in_a_dry_run_holds_nobody(world, held):
    server = held("100", 100)
    world.weir("limit", "set", "total", "--qps", "0.02", "--burst", 1, "--dry-run")
    assert Client(world, server, "alice", n=5).counts()[0]["200"] == 5
    assert world.weir.server()["dry_run_shed"] == 4
    assert (packets(world, "held_record"), owed(world)) == (0, 0)


def test_it_is_held_without_an_agent(world, held):
    server = held(0, 1, "--hold-max", "1")
    world.weir.kill()
    counts, took = Client(world, server, "alice", n=4).counts()
    assert counts == {"200": 4, "connections": 1}
    assert took >= 2


def test_what_is_otherwise_is_said(world, held):
    held(5, 5)

    def warnings(*words):
        return world.weir.run("limit", "set", *words).stderr

    assert "no seat is waited for" in warnings("open", "--key", "user", "--in-flight", 5)
    assert "its penalty begins for nobody" in warnings("user", "--qps", 5, "--burst", 5, "--penalty", "exponential:1s..8s")
    passes = "with hold nobody is refused: whom it denies, or gives no tokens, passes when --hold-max is over"
    assert passes in warnings("namespace", "--deny")
    assert passes in warnings("total", "--qps", 0, "--burst", 2)
    assert "with hold" not in warnings("total", "--qps", 5, "--burst", 5)
    done = world.weir.run("limit", "set", "never", "--key", "source", "--connections", "--deny", "--dry-run")
    assert "with hold" not in done.stderr
    assert world.weir("limit", "set", "many", "--key", "source", "--connections", "--qps", 50, "--burst", 50) == \
        'server "web": limit many is set, and enforced\n'


def test_a_policy_says_what_does_nothing(world, tmp_path):
    policy = tmp_path / "web.yaml"
    text = "apiVersion: weir/v1\nkind: Throttle\nmetadata: {name: web}\nspec:\n  listen: ['*:8443']\n  inside: %s\n  %s\n"

    def warnings(*words):
        policy.write_text(text % words)
        return world.weir.run("check", "-f", policy).stderr

    assert "holdMax" not in warnings("hold", "holdMax: 5")
    assert "web.yaml:7:16: warning: $.spec.insideShare: does nothing here" in warnings("hold", "insideShare: 5")
    assert "web.yaml:7:12: warning: $.spec.holdMax: does nothing here" in warnings("see", "holdMax: 5")


def test_options(world, serve):
    serve("plain")
    for options in ("--inside", "see", "--hold-max", "5"), ("--inside", "hold", "--hold-max", "0"), \
            ("--inside", "hold", "--hold-max", "26"):
        assert "--hold-max" in world.weir.refused("attach", "web", "--port", 8443, *options, status=2)
    assert "--inside-share" in world.weir.refused("attach", "web", "--port", 8443, "--inside", "hold", "--inside-share", "5%",
                                                  status=2)


def test_a_record_ahead_of_its_turn_goes_on(world, serve):
    """It is decided inside: neither dropped, nor charged for what its bytes look like."""
    place = world.veth()
    server = serve("plain", place)
    attach(world, server, mode="hold")
    world.weir("limit", "set", "total", "--qps", 0.001, "--burst", 4)
    client = TlsClient(place, server.port)
    world.at_end(client.close)
    client.ask(PATH)
    client.read()
    loss = Loss(place.server_ns)
    loss.drop("input", DATA_RECORD)
    for _ in range(2):
        client.ask(PATH)
    for _ in range(2):
        client.read()
    assert loss.lost() == 1
    assert packets(world, "out_of_order") == 0
    assert of_limit(world, "total", "admitted") == world.weir.server()["seen_inside"]["seen"] == 3
