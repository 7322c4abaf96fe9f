# SPDX-License-Identifier: GPL-2.0
"""`weir trace` says of each request what became of it: once, in order, and as the server logged it."""
import socket
import time

import pytest

from lib import loss
from lib.process import eventually

pytestmark = pytest.mark.together

FIELDS = ("method", "target", "decision")
CONTROL_TIMEOUT_S = 10  # user/control/control.h


@pytest.fixture
def trace(world, site):
    return world.trace()


def said(requests, *fields):
    return [tuple(request.get(field) for field in fields or FIELDS) for request in requests]


def test_every_kind(world, site, trace):
    site.limit("user", burst=2)
    site.limit("namespace", "busy", burst=0)
    alice, other = site.client("alice"), site.client()
    assert alice.get("/api/v1/namespaces/dev/pods/a?x=%20y") == 200
    assert alice.exchange("/echo?echo=1", "POST", b"12345").status == 200
    assert alice.get("/livez") == 200
    assert alice.exchange("/third", "HEAD").status == 429
    assert other.get("/apis/apps/v1/namespaces/busy/deployments") == 429
    assert other.exchange("/chunks?echo=1", "PUT", chunks=[b"ab", b"c"]).status == 200
    requests = trace.end()
    assert said(requests) == [
        ("GET", "/api/v1/namespaces/dev/pods/a?x=%20y", "passed"),
        ("POST", "/echo?echo=1", "passed"),
        ("GET", "/livez", "exempt"),
        ("HEAD", "/third", "shed"),
        ("GET", "/apis/apps/v1/namespaces/busy/deployments", "shed"),
        ("PUT", "/chunks?echo=1", "passed"),
    ]
    address = site.place.client_address
    assert said(requests, "user", "identified_by", "namespace", "body", "limits") == [
        ("alice", "request_header", "dev", 0, None),
        ("alice", "request_header", None, 5, None),
        ("alice", "request_header", None, 0, None),
        ("alice", "request_header", None, 0, ["user"]),
        (address, "anonymous", "busy", 0, ["namespace"]),
        (address, "anonymous", None, None, None),
    ]
    assert said(requests, "verb", "group", "resource", "subresource", "name") == [
        ("get", None, "pods", None, "a"),
        ("post", None, None, None, None),
        ("get", None, None, None, None),
        ("head", None, None, None, None),
        ("list", "apps", "deployments", None, None),
        ("put", None, None, None, None),
    ]
    assert [request["retry_after"] for request in requests if "retry_after" in request] == [3600, 3600]
    ports = [client.socket.getsockname()[1] for client in (alice, other)]
    assert [request["port"] for request in requests] == [ports[0]] * 4 + [ports[1]] * 2
    assert {(request["server"], request["client"]) for request in requests} == {("web", address)}
    times = [request["time"] for request in requests]
    assert times == sorted(times)
    assert site.server.targets() == [request["target"] for request in requests if request["decision"] != "shed"]


def test_pipelined_and_split(site, trace):
    """In one packet, in pieces, and one that waits for its turn: each of them once."""
    site.limit("user", burst=9)
    client = site.client()
    client.send(b"".join(client.head(f"/r/{i}") for i in range(9)) + client.head("/waits"))
    assert [client.read().status for _ in range(10)] == [200] * 9 + [429]
    split = site.client("split")
    for byte in split.head("/split"):
        split.send(bytes([byte]))
    assert split.read().status == 200
    requests = trace.end()
    assert said(requests) == [("GET", f"/r/{i}", "passed") for i in range(9)] + [
        ("GET", "/waits", "shed"), (None, None, "passed")]
    assert requests[-1]["user"].startswith("#")  # its name was nowhere in one piece
    assert requests[-1]["head"] == len(split.head("/split"))


def test_dry_run_and_pause(world):
    site = world.site()
    site.attach("--dry-run")
    site.limit("user", burst=1)
    trace, client = world.trace("web"), site.client()
    assert client.drive(2) == [200, 200]
    site.weir("pause")
    assert client.get("/paused") == 200
    site.weir("resume")
    assert said(trace.end()) == [("GET", "/r/0", "passed"), ("GET", "/r/1", "dry_run_shed"), ("GET", "/paused", "passed")]


@pytest.mark.parametrize("kind", ["loopback-4", "veth-6"])
def test_under_loss(world, kind):
    """Requests and answers are lost before weir and behind it: none is told twice, none is missing."""
    where, family = kind.split("-")
    site = world.site(world.place(where, int(family)))
    site.attach()
    site.limit("user", burst=0)
    trace = world.trace()
    client = site.client()
    rules = loss.Loss(site.place.client_ns)
    for hook in "input", "output":
        rules.nft(f"add rule inet {loss.TABLE} {hook} meta l4proto tcp numgen inc mod 5 == 4 counter drop\n")
    expected = []
    for i in range(10):
        assert client.get(f"/livez/{i}?size=20000") == 200
        assert client.get(f"/refused/{i}") == 429
        expected += [("GET", f"/livez/{i}?size=20000", "exempt"), ("GET", f"/refused/{i}", "shed")]
    assert said(trace.end()) == expected
    site.check(passed=0, shed=10, exempt=10)


def test_many_connections(world, site):
    """What weir says, what it counts and what the server logged agree, per connection and in order."""
    site.limit("user", burst=30)
    trace = world.trace()
    clients = [site.client() for _ in range(8)]
    for i in range(20):
        for number, client in enumerate(clients):
            client.ask(f"/c{number}/{i}")
        for number, client in enumerate(clients):
            client.check(client.read(), f"/c{number}/{i}")
    requests = trace.end()
    counts = site.weir.counts()
    for decision, n in counts.items():
        assert len([request for request in requests if request["decision"] == decision]) == n
    assert counts["passed"] == 30 and counts["shed"] == 130
    for number, client in enumerate(clients):
        port = client.socket.getsockname()[1]
        assert [request["target"] for request in requests if request["port"] == port] == [
            f"/c{number}/{i}" for i in range(20)]
    passed = [request["target"] for request in requests if request["decision"] == "passed"]
    assert sorted(passed) == sorted(site.server.targets())


def test_readers_come_and_go(world, site):
    client = site.client()
    assert client.drive(2, "/nobody") == [200] * 2
    first = world.trace()
    assert client.get("/one") == 200
    second = world.trace("--decision", "shed", "--decision", "exempt")
    assert client.get("/livez") == 200
    assert said(first.end()) == [("GET", "/one", "passed"), ("GET", "/livez", "exempt")]
    killed = world.trace("web")
    killed.kill()
    site.limit("user", burst=0)
    assert client.get("/two") == 429
    assert said(second.end()) == [("GET", "/livez", "exempt"), ("GET", "/two", "shed")]
    last = world.trace("--count", "2")
    assert client.drive(3, "/last") == [429] * 3
    assert last.wait()[0] == 0
    assert said(last.requests()) == [("GET", "/last/0", "shed"), ("GET", "/last/1", "shed")]
    for time in "1", "1s", "250ms":
        assert world.trace("--for", time).wait() == (0, "weir: tracing web; ^C ends\n")


def test_agent_stops(world, site, trace):
    site.weir.stop()
    assert trace.wait() == (1, "weir: tracing web; ^C ends\nweir: the agent has stopped\n")
    client = site.client()
    assert client.get("/meanwhile") == 200
    site.weir.start()
    again = world.trace()
    assert client.get("/again") == 200
    assert said(again.end()) == [("GET", "/again", "passed")]


def test_server_ends(world, site, trace):
    alone = world.trace("web")
    site.client().get("/before")
    world.keep()
    site.weir("detach", "web", "--force")
    assert alone.wait() == (1, 'weir: tracing web; ^C ends\nweir: server "web" is no longer attached\n')
    assert said(alone.requests()) == [("GET", "/before", "passed")]
    site.attach()
    client = site.client()
    assert client.get("/after") == 200
    assert said(trace.end()) == [("GET", "/before", "passed"), ("GET", "/after", "passed")]


def test_wrong_use(world, site):
    assert site.weir.refused("trace", "other") == 'weir: there is no server "other", only web'
    refusal = site.weir.refused("trace", "--decision", "tls", status=2)
    assert 'there is no decision "tls": passed, shed, exempt' in refusal
    for option in "--count", "--for":
        assert f"{option}: must be at least 1" in site.weir.refused("trace", option, 0, status=2)
    assert "--count" in site.weir.refused("trace", "--count", "many", status=2)
    assert "unexpected argument" in site.weir.refused("trace", "web", "web", status=2)


def test_table(world, site):
    """What a client wrote cannot move the cursor."""
    with world.table_trace() as lines:
        client = site.client("mallory\x9b2J")
        assert client.get("/a") == 200
        assert client.exchange("/apis/apps/v1/namespaces/dev/deployments/web/scale", "PATCH").status == 200
        eventually(lambda: len(lines()) == 3, "the rows are there")
        heads, row, resource = lines()
    assert heads.split() == "TIME SERVER CLIENT USER BY DECISION RETRY VERB NAMESPACE WHAT".split()
    port = client.socket.getsockname()[1]
    address = site.place.client_address
    assert row.split()[1:] == ["web", f"{address}:{port}", "mallory\\xc2\\x9b2J", "request_header",
                               "passed", "-", "get", "-", "/a"]
    assert resource.split()[5:] == ["passed", "-", "patch", "dev", "deployments.apps/scale", "web"]


def test_reader_that_does_not_read(world, site):
    """It is left out, told so, and nobody else is kept waiting."""
    with socket.socket(socket.AF_UNIX) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(str(site.weir.state_dir / "weir.sock"))
        slow.sendall(b'{"command":"trace"}\n')
        stream = slow.makefile("rb")
        assert stream.readline() == b'{"result":{"servers":["web"]}}\n'
        trace = world.trace()
        client = site.client()
        target = "/long/" + 480 * "x"
        n = 8000
        for sent in range(50, n + 1, 50):
            client.send(client.head(target) * 50)
            for _ in range(50):
                assert client.read().status == 200
            if sent % 1000 == 0:  # on a busy machine the agent may be late: more than this may have no room until it comes
                eventually(lambda count=sent: len(trace.requests()) == count, "the reader that reads is told of all")
        assert len(trace.end()) == n
        time.sleep(CONTROL_TIMEOUT_S + 2)  # the patience for other commands is not for streams
        slow.shutdown(socket.SHUT_WR)
        lines = stream.read().splitlines()
    lost = int(lines[-1].decode().removeprefix('{"end":{"lost":').removesuffix("}}"))
    told = sum(line.startswith(b'{"request"') for line in lines)
    lost += sum(int(line[8:-1]) for line in lines if line.startswith(b'{"lost":'))
    assert told < n and told + lost == n
