# SPDX-License-Identifier: GPL-2.0
"""Limits on connections: how many are admitted, by whom, and when a seat is free again."""
import errno
import os
import select
import socket
import struct
import time

import pytest

from lib.client import unacknowledged
from lib.netns import add_veth
from lib.process import eventually
from lib.raw import ACK, FIN, PSH, RST, SYN, RawClient

pytestmark = pytest.mark.together

NO_PROXY = "--trusted-proxy", "192.0.2.1"
RATE = "--connections", "--qps", 0  # the burst is there once: every count is exact
AT_ONCE_S = 0.4  # a client that waits for longer is turned away, or the machine is slow: weir is asked


class Silent(RawClient):
    """Sends a SYN, and never completes the handshake."""

    def handshake(self):
        return True


class Half(RawClient):
    """Has the server's SYN-ACK. Does not complete the handshake before it is told to."""

    def handshake(self):
        self.receive()
        return bool(self.peer)

    def complete(self, **how):
        self.send(**{"at": self.next + 1, **how})


def several(kind, site, n, first_port=40000):
    """Clients of one kind, which go with the test."""
    clients = [kind(site.place, site.server.port, source_port=first_port + i) for i in range(n)]
    for client in clients:
        site.world.at_end(client.close)
    return clients


@pytest.fixture(params=["veth", "veth IPv6", "loopback"])
def site(world, request):
    family = 6 if "6" in request.param else 4
    site = world.site(world.place(request.param.split()[0], family))
    site.attach(*NO_PROXY)
    return site


@pytest.fixture
def veth(world):
    site = world.site(world.veth())
    site.attach(*NO_PROXY)
    return site


def limit(site, *words, name="conns"):
    site.weir("limit", "set", name, *words)


def retransmissions(sock):
    return struct.unpack_from("I", sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), 100)[0]


def turned_away(site, sock):
    """How many packets weir has dropped; where no agent can be asked, how many this client has sent again."""
    if not site.weir.running():
        return retransmissions(sock)
    return attempts(site).get("dropped", 0) + site.packets("boxed")


def wait(site, sock, condition):
    """Until it holds. What is dropped is sent again, and dropped again: then the client has timed out, and not because it is slow."""
    until = time.monotonic() + AT_ONCE_S
    before = None
    while not condition():
        if error := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(error, os.strerror(error))
        if time.monotonic() < until:
            time.sleep(0.001)
        elif before is None:
            before = turned_away(site, sock)
        elif turned_away(site, sock) > before:
            raise TimeoutError
        else:
            time.sleep(0.05)


def connect(site, source=None, to=None):
    """
    A connection that the server has taken, as it has acknowledged a byte; or the error that the client got.
    to: address and port, if they are not the server's.
    """
    with site.place.client_ns.entered():
        sock = socket.socket(site.place.family)
    site.world.at_end(sock.close)
    if source:
        sock.bind((source, 0))
    sock.setblocking(False)
    sock.connect_ex(to or (site.place.address, site.server.port))
    try:
        wait(site, sock, lambda: select.select([], [sock], [], 0)[1])
        sock.send(b"G")
        wait(site, sock, lambda: not unacknowledged(sock))
    except OSError as error:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # or it would go on trying
        sock.close()
        return errno.errorcode.get(error.errno, "timeout")
    return sock


def connects(site, n, source=None, to=None):
    """How many of n attempts, one after the other, succeed; they stay open."""
    return sum(isinstance(connect(site, source, to), socket.socket) for _ in range(n))


def attempts(site):
    """But for `swept`: the agent's sweep comes in its own time, and finds what earlier tests have left, too."""
    return {outcome: n for outcome, n in site.status()["connection_attempts"].items() if outcome != "swept"}


def taken(site, name="conns"):
    return site.limit_of(name)["in_flight"]


def test_rate(site):
    limit(site, "--key", "source", *RATE, "--burst", 3)
    assert connects(site, 5) == 3
    assert attempts(site)["admitted"] == 3
    assert attempts(site)["dropped"] >= 2
    assert site.limit_of("conns")["admitted"] == 3
    assert site.weir.metrics()["weir_connection_attempts_total"]["admitted", "web"] == 3


def test_reset(site):
    limit(site, "--key", "source", *RATE, "--burst", 1, "--over", "reset")
    assert isinstance(connect(site), socket.socket)
    assert connect(site) == "ECONNREFUSED"
    assert attempts(site) == {"admitted": 1, "reset": 1}


def test_open(site):
    limit(site, "--key", "source", "--open", 2, "--over", "reset")
    first, second = connect(site), connect(site)
    assert connect(site) == "ECONNREFUSED"
    assert taken(site) == 2
    first.close()
    eventually(lambda: taken(site) == 1, "its seat is free")
    assert isinstance(connect(site), socket.socket)
    assert connect(site) == "ECONNREFUSED"
    second.close()
    assert site.limit_of("conns")["highest"] == 2


def test_requests_are_not_counted(site):
    """Nor do limits on requests count connections."""
    site.limit("user", burst=2)
    limit(site, "--key", "total", *RATE, "--burst", 2)
    client = site.client()
    assert client.drive(3) == [200, 200, 429]
    assert site.limit_of("conns")["admitted"] == 1
    client.close()
    assert site.client().get("/r") == 429
    assert connects(site, 1) == 0


def test_sources_are_told_apart(veth):
    place = veth.place
    veth.world.address(place.client_ns, "10.9.7.3/24")
    limit(veth, "--key", "source", *RATE, "--burst", 2)
    assert connects(veth, 3) == 2
    assert connects(veth, 3, source="10.9.7.3") == 2
    limit(veth, "10.9.7.4", "--qps", 0, "--burst", 1)
    veth.world.address(place.client_ns, "10.9.7.4/24")
    assert connects(veth, 2, source="10.9.7.4") == 1


def test_a_refusal_takes_nothing(veth):
    """The server's limit is not used up by those whom their own refuses."""
    veth.world.address(veth.place.client_ns, "10.9.7.3/24")
    limit(veth, "--key", "source", *RATE, "--burst", 1, "--over", "reset")
    limit(veth, "--key", "total", *RATE, "--burst", 2, name="all")
    assert connects(veth, 5) == 1
    assert veth.limit_of("all")["admitted"] == 1
    assert connects(veth, 1, source="10.9.7.3") == 1


def test_a_request_that_comes_again_gives_back_no_connections_seat(veth):
    """Behind one that is under way it cannot be refused yet: it comes again, on the CPU that admits the connection."""
    cpus = os.sched_getaffinity(0)
    veth.world.at_end(os.sched_setaffinity, 0, cpus)
    os.sched_setaffinity(0, {min(cpus)})
    veth.limit("user", burst=1)
    limit(veth, "--key", "total", "--open", 2, "--over", "reset")
    client = veth.client()
    client.send(client.head("/a?held=1") + client.head("/b"))
    eventually(lambda: retransmissions(client.socket) > 1, "it comes again")
    assert isinstance(connect(veth), socket.socket)
    before = retransmissions(client.socket)
    eventually(lambda: retransmissions(client.socket) > before, "it comes again, once more")
    assert taken(veth) == 2
    assert connect(veth) == "ECONNREFUSED"


def test_networks(world):
    """An address table says users, groups and namespaces of connections, too; its exempt users have none of their limits."""
    place = world.veth()
    for host in range(3, 6):
        world.address(place.client_ns, f"10.9.7.{host}/24")
    table = world.directory / "addresses.csv"
    table.write_text("10.9.7.2/31,kubelets,,\n10.9.7.4/32,monitoring,,team\n10.9.7.5/32,root,system:masters,\n")
    site = world.site(place)
    site.attach(*NO_PROXY, "--address-file", table)
    limit(site, "--key", "user", *RATE, "--burst", 2)
    limit(site, "--key", "namespace", "--open", 1, name="teams")
    assert connects(site, 2) + connects(site, 2, source="10.9.7.3") == 2
    assert connects(site, 2, source="10.9.7.4") == 1
    assert connects(site, 5, source="10.9.7.5") == 5
    assert attempts(site)["exempt"] == 5


def test_rules(veth):
    limit(veth, "--key", "total", *RATE, "--burst", 0, "--source", "10.9.7.3/32", "--over", "reset")
    assert connects(veth, 2) == 2
    veth.world.address(veth.place.client_ns, "10.9.7.3/24")
    assert connect(veth, source="10.9.7.3") == "ECONNREFUSED"


def test_top(veth):
    limit(veth, "--key", "source", *RATE, "--burst", 2)
    several(Silent, veth, 3)  # none of these is a connection
    assert connects(veth, 4) == 2
    (row,) = veth.weir.json("top", "--once", "--interval", "100ms", "--by", "connection")["rows"]
    dropped = attempts(veth)["dropped"]
    assert (row["source"], row["requests"], row["refused"]) == (veth.place.client_address, 2 + dropped, dropped)


def test_explain(world):
    """What it says of a connection is what becomes of the next one; and saying so takes nothing."""
    table = world.directory / "addresses.csv"
    table.write_text("192.0.2.5/32,root,system:masters,\n192.0.2.6/32,kubelet,,team\n")
    site = world.site(world.veth())
    site.attach("--trusted-proxy", "192.0.2.1", "--address-file", table)

    def explain(source=site.place.client_address):
        said = site.weir.json("explain", "--connection", "--source", source)
        return said["decision"], {each["limit"]: each["says"] for each in said["limits"]}, said

    assert explain()[:2] == ("admitted", {})
    limit(site, "--key", "source", *RATE, "--burst", 1)
    limit(site, "--key", "source", "--open", 2, "--over", "reset", name="open")
    for _ in range(3):
        decision, says, said = explain()
        assert (decision, says) == ("admitted", {"conns": "admits", "open": "admits"})
    assert said["connection"] == {"client": site.place.client_address, "user": site.place.client_address,
                                  "identified_by": "anonymous", "namespace": None}
    assert attempts(site) == {} and taken(site, "open") == 0
    assert connects(site, 1) == 1
    decision, says, said = explain()
    assert (decision, says) == ("dropped", {"conns": "refuses", "open": "admits"})
    found = {each["limit"]: each for each in said["limits"]}
    assert (found["conns"]["tokens"], found["conns"]["wait"]) == (0, None)
    assert (found["open"]["taken"], found["open"]["in_flight"]) == (1, 2)
    assert "DECISION   dropped" in site.weir("explain", "--connection", "--source", site.place.client_address)
    assert connect(site) == "timeout"
    assert explain("192.0.2.9")[0] == "admitted"
    assert explain("192.0.2.5")[::2] == ("exempt", {**explain("192.0.2.5")[2], "exempt_by": "group", "limits": []})
    known = explain("192.0.2.6")[2]["connection"]
    assert (known["user"], known["namespace"]) == ("kubelet", "team")
    proxy = explain("192.0.2.1")
    assert (proxy[0], proxy[2]["connection"]["user"]) == ("admitted", None)
    assert proxy[1] == {"conns": "nothing", "open": "nothing"}
    assert "192.0.2.1 brings the connections of many" in proxy[2]["warnings"][0]
    assert "warnings" not in explain()[2]
    site.weir("limit", "set", "conns", "--dry-run")
    assert explain()[:2] == ("dry_run_refused", {"conns": "would_refuse", "open": "admits"})
    site.weir("limit", "set", "secrets", "--key", "user", "--resource", "secrets", "--qps", 1, "--burst", 1)
    site.weir("pause")
    for _ in range(4):  # the memory of each CPU's latest question
        assert site.weir.json("explain", "--user", "alice", "GET", "/api/v1/secrets")["rules"]
        decision, says, said = explain()
        assert (decision, says, said["rules"]) == ("admitted", {}, [])
    refused = site.weir.refused
    assert "--source is missing" in refused("explain", "--connection", status=2)
    assert "no request" in refused("explain", "--connection", "--source", "192.0.2.9", "GET", "/", status=2)
    assert "no request" in refused("explain", "--connection", "--source", "192.0.2.9", "--user", "a", status=2)


def dry_run_and_pause(site, over, refused):
    limit(site, "--key", "source", *RATE, "--burst", 1, "--over", over, "--dry-run")
    assert connects(site, 3) == 3
    assert attempts(site) == {"admitted": 1, "dry_run_refused": 2}
    limit(site, "--enforce")
    assert connect(site) == refused
    site.weir("pause")
    assert connects(site, 2) == 2
    site.weir("resume")
    assert connect(site) == refused
    site.weir("limit", "delete", "conns")
    assert connects(site, 2) == 2


def test_dry_run_and_pause(veth):
    dry_run_and_pause(veth, "reset", "ECONNREFUSED")


def test_a_handshake_that_is_not_complete_takes_nothing(veth):
    """Its source may be false."""
    limit(veth, "--key", "source", *RATE, "--burst", 2)
    limit(veth, "--key", "source", "--open", 2, name="open")
    for silent in several(Silent, veth, 5):
        silent.send(flags=SYN)
    eventually(lambda: attempts(veth).get("repeated") == 5, "the server has answered all")
    assert attempts(veth) == {"repeated": 5}
    assert (taken(veth, "open"), veth.limit_of("conns")["admitted"]) == (0, 0)
    assert connects(veth, 3) == 2
    assert taken(veth, "open") == 2


@pytest.mark.parametrize("n", [2, 3, 4, 20])
@pytest.mark.parametrize("words", [(*RATE, "--burst", 3), ("--open", 3)], ids=["rate", "open"])
def test_handshakes_side_by_side(veth, words, n):
    """Each of them was answered before one was complete. No more are admitted than one after the other."""
    limit(veth, "--key", "source", *words)
    halves = several(Half, veth, n)
    for half in halves:
        half.complete()
    refused = n - min(n, 3)
    eventually(lambda: sum(attempts(veth).values()) == n, "all have been asked")
    assert attempts(veth) == {"admitted": min(n, 3), **({"dropped": refused} if refused else {})}
    for half in halves:
        half.complete()  # of those that were refused: it asks anew
    eventually(lambda: attempts(veth).get("dropped", 0) == 2 * refused, "they were refused again")
    eventually(lambda: len(veth.server.connections) == min(n, 3), "the server has no others")
    assert veth.limit_of("conns")["admitted"] == min(n, 3)


def test_what_completes_no_handshake(veth):
    """Nor does it open the way for what does."""
    limit(veth, "--key", "source", *RATE, "--burst", 1)
    (half,) = several(Half, veth, 1)
    assert connects(veth, 1) == 1
    half.complete(ack=half.peer + 1)
    half.complete(ack=half.peer - 1, data=b"GET /")
    for flags in 0, FIN, PSH:
        half.complete(flags=flags, data=b"GET /")
    half.complete(fragments=16)
    time.sleep(0.1)
    assert attempts(veth) == {"admitted": 1}
    half.complete()
    half.complete(at=half.next, flags=SYN | ACK)  # the kernel overlooks a SYN that repeats the first
    half.complete(data=b"GET /")
    eventually(lambda: attempts(veth).get("dropped") == 3, "each asks")
    assert len(veth.server.connections) == 1
    veth.weir("limit", "delete", "conns")
    half.complete()
    eventually(lambda: len(veth.server.connections) == 2, "it is free")


def test_a_penalty_is_for_proven_sources(veth):
    limit(veth, "--key", "source", *RATE, "--burst", 1, "--penalty", "exponential:100s..100s")
    assert connects(veth, 1) == 1
    several(Silent, veth, 5)
    (half,) = several(Half, veth, 1, first_port=41000)
    assert attempts(veth) == {"admitted": 1}
    half.complete()
    eventually(lambda: attempts(veth).get("dropped") == 1, "it is refused, and penalised")
    assert connect(veth) == "timeout"
    assert attempts(veth)["dropped"] >= 2


def test_cookies(veth):
    """Who has no allowance left gets none."""
    veth.world.setting(veth.place.server_ns, "net.ipv4.tcp_syncookies", 2)
    limit(veth, "--key", "source", "--open", 2)
    limit(veth, "--key", "source", *RATE, "--burst", 3, name="rate")
    halves = several(Half, veth, 5)
    assert attempts(veth) == {"syn_cookie": 5}
    assert (taken(veth), veth.limit_of("rate")["admitted"]) == (0, 0)
    for half in halves:
        half.complete()
    eventually(lambda: attempts(veth).get("dropped") == 3, "the others are refused")
    assert (taken(veth), veth.limit_of("rate")["admitted"]) == (2, 2)
    eventually(lambda: len(veth.server.connections) == 2, "the server has two")
    assert connect(veth) == "timeout"
    assert attempts(veth)["syn_cookie"] == 5
    for half in halves:
        half.send(at=half.next + 1, flags=RST)
    eventually(lambda: taken(veth) == 0, "all seats are free")


def test_a_cookie_that_is_none(veth):
    veth.world.setting(veth.place.server_ns, "net.ipv4.tcp_syncookies", 2)
    limit(veth, "--key", "source", *RATE, "--burst", 1)
    (silent,) = several(Silent, veth, 1)
    for n in range(20):
        silent.send(at=silent.next + 1, ack=n * 12345, flags=ACK)
    time.sleep(0.1)
    assert attempts(veth) == {"syn_cookie": 1}
    assert connects(veth, 1) == 1


def test_a_proxy_is_nobodys_source(world):
    """Those who bring the connections of many are asked by limits without a key alone."""
    site = world.site(world.veth())
    site.attach("--trusted-proxy", "10.9.7.2/32")
    limit(site, "--key", "source", *RATE, "--burst", 0)
    limit(site, "--key", "total", *RATE, "--burst", 3, name="all")
    assert connects(site, 4) == 3


def test_seats_outlive_the_agent(veth):
    limit(veth, "--key", "source", "--open", 1, "--over", "reset")
    first = connect(veth)
    veth.weir.kill()
    assert connect(veth) == "ECONNREFUSED"
    first.close()
    eventually(lambda: isinstance(connect(veth), socket.socket), "its seat is free without an agent")
    veth.weir.start()
    assert taken(veth) == 1
    assert connect(veth) == "ECONNREFUSED"


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_overrides_outlive_the_agent(veth, how):
    """Of limits on open and on new connections: one more is refused by each, before and after."""
    address = veth.place.client_address
    limit(veth, "--key", "source", "--open", 9, "--over", "reset", name="open")
    limit(veth, address, "--open", 1, name="open")
    limit(veth, "--key", "source", *RATE, "--burst", 9)
    limit(veth, address, "--qps", 0, "--burst", 2)
    before = veth.weir.json("limit", "list")
    veth.weir.kill() if how == "killed" else veth.weir.stop()
    veth.weir.start()
    assert veth.weir.json("limit", "list") == before
    first = connect(veth)
    assert connect(veth) == "ECONNREFUSED"
    first.close()
    eventually(lambda: taken(veth, "open") == 0, "its seat is free")
    assert connects(veth, 1) == 1
    limit(veth, address, "--open", 9, name="open")
    assert connect(veth) == "timeout"


def test_other_ports_are_left_alone(world):
    site = world.site(world.veth())
    other = world.echo(site.place)
    site.attach(*NO_PROXY)
    limit(site, "--key", "total", *RATE, "--burst", 0, "--over", "reset")
    assert connect(site) == "ECONNREFUSED"
    site.server = other
    assert connects(site, 3) == 3


def test_words(veth):
    limit(veth, "--key", "source", "--connections", "--qps", 20, "--burst", 40, "--over", "reset")
    (said,) = veth.weir.json("limit", "list")["limits"]
    assert {key: said[key] for key in ("qps", "burst", "connections", "over")} == {
        "qps": 20, "burst": 40, "connections": True, "over": "reset"}
    limit(veth, "--qps", 5, "--burst", 6)  # it stays one on connections
    assert "connections" in veth.weir("limit", "list")
    refused = veth.weir.refused
    assert "delete it first" in refused("limit", "set", "conns", "--open", 3)
    assert "--open" in refused("limit", "set", "c", "--open", 3, "--qps", 1, "--burst", 1, status=2)
    assert "neither drop nor reset" in refused("limit", "set", "c", "--key", "source", "--open", 3, "--over", "no", status=2)
    assert "no object" in refused("limit", "set", "c", "--key", "object", "--open", 3)
    assert "users, groups, namespaces and sources" in refused("limit", "set", "c", "--key", "source", "--open", 3,
                                                              "--verb", "get")
    assert "over" in refused("limit", "set", "c", "--key", "source", "--qps", 3, "--burst", 3, "--over", "drop")


def test_policy(world):
    site = world.site(world.veth())
    policy = world.directory / "api.yaml"
    policy.write_text("""
apiVersion: weir/v1
kind: Throttle
metadata: {name: web}
spec:
  limits:
  - {name: rate, key: source, connections: true, qps: 0, burst: 3, over: reset}
  - {name: open, key: source, open: 2, over: reset}
""")
    site.attach(*NO_PROXY)
    site.weir("apply", "-f", policy)
    first, second, third = (connect(site) for _ in range(3))
    assert third == "ECONNREFUSED"
    assert site.limit_of("open")["refused"] == 1
    exported = site.weir("export")
    assert "open: 2" in exported and "connections: true" in exported
    second.close()
    first.close()


@pytest.mark.alone
def test_two_interfaces(world):
    """A source is one whatever way it comes."""
    place = world.veth()
    add_veth(place.server_ns, place.client_ns, 4, subnet=8, device="eth1")
    site = world.site(place)
    site.attach(*NO_PROXY)
    limit(site, "--key", "total", *RATE, "--burst", 3)
    assert connects(site, 2) == 2
    assert connects(site, 2, source="10.9.8.2") == 1
