# SPDX-License-Identifier: GPL-2.0
"""A packet is lost, and just that one: the client reads each answer once and in order, nothing is charged twice."""
import pytest

from lib import loss
from lib.process import eventually

pytestmark = pytest.mark.together


class Lossy:
    """A server whose path loses packets; one user has had what he may have."""

    def __init__(self, site):
        self.site = site
        self.at_client = loss.Loss(site.place.client_ns)
        same = site.place.client_ns is site.place.server_ns
        self.at_server = self.at_client if same else loss.Loss(site.place.server_ns)
        site.limit("user", burst=2)
        self.client = site.client()
        assert self.client.drive(2, "/first") == [200, 200]

    @staticmethod
    def check(side, n):
        """The rule has lost what it was to lose."""
        eventually(lambda: side.lost() == n, f"{n} packets are lost")


@pytest.fixture(params=["loopback-4", "veth-4", "veth-6"])
def lossy(request, world):
    kind, family = request.param.split("-")
    site = world.site(world.place(kind, int(family)))
    site.attach()
    return Lossy(site)


@pytest.mark.parametrize("n", [1, 2])
def test_429_is_lost(lossy, n):
    lossy.at_client.drop("input", loss.SHED, n)
    assert lossy.client.get("/lost") == 429
    lossy.check(lossy.at_client, n)
    assert lossy.site.packets("answered_again") >= n
    assert lossy.client.get("/livez") == 200
    assert lossy.client.drive(3) == [429] * 3
    lossy.site.check(passed=2, shed=4, exempt=1)


def test_later_429_is_lost(lossy):
    """Offsets of earlier sheds are under it."""
    assert lossy.client.get("/a") == 429
    assert lossy.client.get("/livez") == 200
    assert lossy.client.get("/b") == 429
    lossy.at_client.drop("input", loss.SHED, 2)
    assert lossy.client.get("/lost") == 429
    lossy.check(lossy.at_client, 2)
    assert lossy.client.get("/livez?size=300000") == 200
    lossy.site.check(passed=2, shed=3, exempt=2)


def test_refused_request_is_lost(lossy):
    lossy.at_client.drop("output", loss.REQUEST, 2)
    assert lossy.client.get("/lost") == 429
    lossy.check(lossy.at_client, 2)
    assert lossy.client.get("/livez") == 200
    lossy.site.check(passed=2, shed=1, exempt=1)


def test_passed_request_is_lost_behind_weir(lossy):
    """What was let through is not decided again when it comes again."""
    client = lossy.site.client("other")
    lossy.at_server.drop("input", loss.REQUEST, 2)
    assert client.drive(4) == [200, 200, 429, 429]
    lossy.check(lossy.at_server, 2)
    lossy.site.check(passed=4, shed=2)


def test_passed_request_behind_a_shed_one_is_lost_behind_weir(lossy):
    assert lossy.client.drive(2) == [429] * 2
    lossy.at_server.drop("input", loss.REQUEST, 2)
    assert lossy.client.drive(2, "/livez") == [200, 200]
    lossy.check(lossy.at_server, 2)
    assert lossy.client.drive(2, "/then") == [429] * 2
    lossy.site.check(passed=2, shed=4, exempt=2)


def test_ack_of_429_is_lost(world):
    """The first request of a connection is refused, so that the ACK is known by what comes before it."""
    site = world.site(world.veth())
    site.attach()
    site.limit("user", burst=0)
    client = site.client()
    client.settle()
    rules = loss.Loss(site.place.client_ns)
    rules.drop("output", loss.BARE_ACK)
    assert client.get("/refused") == 429
    eventually(lambda: rules.lost() == 1, "the ACK of the 429 is lost")
    assert client.get("/livez") == 200
    assert client.drive(3) == [429] * 3
    site.check(passed=0, shed=4, exempt=1)


def test_answer_after_429_is_lost(lossy):
    assert lossy.client.get("/refused") == 429
    lossy.at_client.drop("input", loss.SERVED, 2)
    assert lossy.client.get("/livez?size=500") == 200
    lossy.check(lossy.at_client, 2)
    assert lossy.client.get("/refused/again") == 429
    lossy.site.check(passed=2, shed=2, exempt=1)


def test_answer_before_429_is_acknowledged_late(lossy):
    """The server's answer is lost, then asked for again; the next request is refused behind it."""
    lossy.at_client.drop("input", loss.SERVED, 1)
    assert lossy.client.get("/livez?size=200000") == 200
    lossy.check(lossy.at_client, 1)
    assert lossy.client.get("/refused") == 429
    assert lossy.client.get("/livez?size=200000") == 200
    lossy.site.check(passed=2, shed=1, exempt=2)


@pytest.mark.parametrize("n", [1, 2])
def test_swallowed_body_is_lost(lossy, n):
    """Lost on its way to weir, which waits for it before it answers."""
    lossy.at_client.drop("output", loss.POST, n)
    assert lossy.client.exchange("/post", "POST", b"b" * 30_000).status == 429
    lossy.check(lossy.at_client, n)
    assert lossy.client.exchange("/livez?echo=1", "POST", b"c" * 30_000).status == 200
    lossy.site.check(passed=2, shed=1, exempt=1)


@pytest.mark.parametrize("n", [1, 2])
def test_fin_of_client_is_lost(lossy, n):
    assert lossy.client.get("/refused") == 429
    lossy.at_client.drop("output", f"{loss.FIN} tcp dport {lossy.site.server.port}", n)
    lossy.client.end_of_requests()
    lossy.client.expect_end()
    lossy.check(lossy.at_client, n)
    eventually(lambda: lossy.site.server.connections[0].ending == "eof", "the server has read the end")


@pytest.mark.parametrize("n", [1, 2])
def test_fin_of_server_is_lost(lossy, n):
    assert lossy.client.get("/refused") == 429
    lossy.at_client.drop("input", f"{loss.FIN} tcp sport {lossy.site.server.port}", n)
    lossy.site.server.hang_up(0)
    lossy.client.expect_end()
    lossy.check(lossy.at_client, n)


def test_reset_of_server_is_lost(world):
    """What waits for an answer that will not come is told so by another RST."""
    site = world.site(world.veth())
    site.attach()
    at_client = loss.Loss(site.place.client_ns)
    at_client.drop("input", f"tcp flags & rst == rst tcp sport {site.server.port}")
    site.limit("user", burst=1)
    client = site.client()
    assert client.drive(2) == [200, 429]
    site.weir("limit", "delete", "user")
    client.ask("/never?reset=1&delay_ms=3000")
    eventually(lambda: site.server.served() == 2, "the server has the request")
    site.limit("user", burst=0)
    client.ask("/waits")
    eventually(lambda: site.unanswered().get("pipelined"), "the next one waits")
    with pytest.raises(ConnectionResetError):
        client.read()
    Lossy.check(at_client, 1)
    assert site.server.served() == 2


def test_closing_429_is_lost(lossy):
    """The server's socket is gone by then: weir alone says it again."""
    lossy.at_client.drop("input", loss.SHED, 2)
    answer = lossy.client.exchange("/last", Connection="close")
    assert (answer.status, answer.fields["connection"]) == (429, "close")
    lossy.client.expect_end()
    lossy.check(lossy.at_client, 2)
    assert lossy.site.packets("answered_close") == 1
    lossy.site.check(passed=2, shed=1)


def test_everything_at_times(world):
    """Every seventh packet of each way is lost, while passes and sheds alternate."""
    place = world.veth()
    site = world.site(place)
    site.attach()
    site.limit("user", burst=0)
    client = site.client()
    rules = loss.Loss(place.client_ns)
    for hook in "input", "output":
        rules.nft(f"add rule inet {loss.TABLE} {hook} meta l4proto tcp numgen inc mod 7 == 6 counter drop\n")
    for i in range(10):
        assert client.get(f"/livez/{i}?size=20000") == 200
        assert client.get(f"/refused/{i}") == 429
    site.check(passed=0, shed=10, exempt=10)
