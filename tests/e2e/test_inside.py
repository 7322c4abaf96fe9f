# SPDX-License-Identifier: GPL-2.0
"""Requests are seen inside Go servers, behind TLS and HTTP/2, as the server knows them (attach --inside)."""
import contextlib
import re
import shutil
import socket
import subprocess
import time

import pytest

from lib.inside import attach, program, refuse
from lib.maps import Maps
from lib.process import end, eventually

pytestmark = pytest.mark.together

OK = "200 HTTP/2.0 /get/dev/pods"


def seen(world, name="web"):
    return world.weir.server(name)["seen_inside"]


def said(requests, *fields):
    return [tuple(request[field] for field in fields) for request in requests]


def test_any_go_server(world, serve):
    server = serve("plain")
    attach(world, server)
    assert world.weir.server()["inside"]["text"].startswith("see (plain, go1.")
    trace = world.trace()
    assert server.get("/a/b?c=d", times=3) == ["200 HTTP/2.0 /a/b?c=d"] * 3
    assert server.get("/x", protocol="http1") == ["200 HTTP/1.1 /x"]
    requests = trace.end()
    assert said(requests, "method", "target", "user", "identified_by", "decision") == \
        [("GET", "/a/b?c=d", server.place.client_address, "anonymous", "passed")] * 3 + \
        [("GET", "/x", server.place.client_address, "anonymous", "passed")]
    assert len({request["port"] for request in requests}) == 2
    assert seen(world) == {"seen": 4}
    assert world.weir.metrics()["weir_inside_requests_total"][("seen", "web")] == 4


def test_plain_http_is_left_to_its_packets(world, serve):
    """It is counted once, and what of it cannot be read is held, as without --inside."""
    server = serve("plain", mode="serve-plain")
    attach(world, server, options=("--framing", "pass"))
    world.weir("limit", "set", "total", "--qps", 0, "--burst", 5)
    place = server.place
    with place.client_ns.entered(), socket.create_connection((place.address, server.port)) as plain:
        plain.sendall(b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"/a\n" in plain.recv(4096)
    assert seen(world) == {"on_wire": 1}
    assert world.weir.server()["passed"] == 1
    answered = 0
    with place.client_ns.entered(), socket.create_connection((place.address, server.port)) as lenient:
        lenient.settimeout(1)
        with contextlib.suppress(TimeoutError):
            for _ in range(10):  # lines without CR: Go takes them
                lenient.sendall(b"GET /b HTTP/1.1\nHost: x\n\n")
                answered += b"/b\n" in lenient.recv(4096)
    assert answered <= 4, "more than the limit"


def test_users_of_an_api_server(world, serve):
    """The audit asks for the attributes, too: a request is still seen once."""
    server = serve("apiserver")
    attach(world, server)
    trace = world.trace()
    assert server.get("/list/dev/pods", "alice", 2) == ["200 HTTP/2.0 /list/dev/pods"] * 2
    assert server.get("/get/dev/secrets/x", "Zoë") == ["403 forbidden"]
    assert server.get("/deletecollection/dev/events", "n" * 300, protocol="http1") == \
        ["200 HTTP/1.1 /deletecollection/dev/events"]
    requests = trace.end()
    assert said(requests, "user", "identified_by", "verb", "namespace", "resource", "name") == [
        ("alice", "server", "list", "dev", "pods", None),
        ("alice", "server", "list", "dev", "pods", None),
        ("Zo\\xc3\\xab", "server", "get", "dev", "secrets", "x"),
        ("n" * 120 + "...", "server", "deletecollection", "dev", "events", None),
    ]
    assert {request["client"] for request in requests} == {server.place.client_address}
    assert seen(world) == {"seen": 4}
    assert world.weir.server()["identified"] == {"server": 4}


def test_users_of_a_server_without_priority_and_fairness(world, serve):
    """What it is asked for is seen at another place, to which the audit comes, too."""
    server = serve("unfair")
    attach(world, server)
    assert "no function k8s.io/apiserver/pkg/util/flowcontrol" in world.weir.server()["inside"]["why_slow"]
    assert "each request is seen at several instructions" in world.weir("status")
    trace = world.trace()
    assert server.get("/list/dev/pods", "alice", 2) == ["200 HTTP/2.0 /list/dev/pods"] * 2
    assert server.get("/get/dev/secrets/x", "Zoë") == ["403 forbidden"]
    assert said(trace.end(), "user", "verb", "namespace", "resource", "name") == [
        ("alice", "list", "dev", "pods", None)] * 2 + [("Zo\\xc3\\xab", "get", "dev", "secrets", "x")]
    assert seen(world) == {"seen": 3}


def test_what_is_not_known_is_counted(world, serve):
    server = serve("apiserver")
    attach(world, server)
    assert server.get("/get/dev/pods", "other") == ["200 HTTP/2.0 /get/dev/pods"]
    assert server.get("/get/dev/pods", "x" * 8193) == ["200 HTTP/2.0 /get/dev/pods"]
    assert server.get("/get/dev/pods", "x" * 8192) == ["200 HTTP/2.0 /get/dev/pods"]
    assert server.get("/get/dev/pods", "\udcff") == ["200 HTTP/2.0 /get/dev/pods"]
    assert seen(world) == {"other_user": 1, "not_text": 2, "seen": 1}


def test_whose_a_request_is(world, serve):
    """Who is impersonated, of whatever type. Another user in its context is not asked for by the server, nor by weir."""
    server = serve("apiserver")
    attach(world, server)
    trace = world.trace()
    for users in "alice>bob", "other>alice", "alice+bob", "alice>bob+carol":
        assert server.get("/get/dev/pods", users) == ["200 HTTP/2.0 /get/dev/pods"]
    for users in "alice>other", "alice>nobody", "alice>other+bob":
        assert server.get("/get/dev/pods", users) == ["200 HTTP/2.0 /get/dev/pods"]
    assert said(trace.end(), "user")[:4] == [("bob",), ("alice",), ("alice",), ("bob",)]
    assert seen(world) == {"seen": 4, "other_user": 3}


def test_hostile_memory(world, serve):
    """Strings that point nowhere, or are endless; no user at all. Each is counted, and the server does not notice."""
    server = serve("apiserver")
    attach(world, server)
    for lie in "nobody", "nil", "unmapped", "in the kernel", "endless", "negative":
        assert server.get("/get/dev/pods", lie) == ["200 HTTP/2.0 /get/dev/pods"]
    assert seen(world) == {"other_user": 1, "not_text": 2, "unreadable": 3}
    assert "could not be read inside the server" in world.weir.server()["warning"]
    server.get("/get/dev/pods", "alice")
    assert seen(world)["seen"] == 1


def test_calls_whose_stack_has_to_grow(world):
    """Somewhere in these goroutines, each a call deeper, the probed function has to begin again: each request is seen once."""
    place = world.loopback()
    world.agent()
    with subprocess.Popen(place.server_ns.command(program("loop"), f"{place.address}:8443"), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as loop:
        world.at_end(lambda: end(loop))
        eventually(lambda: place.server_ns.run("ss", "-Hltn", "sport", "=", ":8443").strip(), "it listens")
        world.weir("attach", "web", "--port", 8443, "--netns", place.server_ns.path, "--inside", "see")
        world.attached()
        loop.stdin.write("deep 1000\n")
        loop.stdin.flush()
        assert loop.stdout.readline().strip().isdigit()
        assert seen(world) == {"seen": 1000}
        loop.stdin.close()


def test_two_processes_of_one_binary(world, serve):
    """Its probes run in both; only one of them is attached."""
    server, other = serve("apiserver"), serve("apiserver", port=9443)
    attach(world, server)
    other.get("/get/dev/pods", "alice", 3)
    server.get("/get/dev/pods", "alice", 2)
    assert seen(world) == {"seen": 2}
    attach(world, other, "other")
    other.get("/get/dev/pods", "alice", 4)
    assert (seen(world), seen(world, "other")) == ({"seen": 2}, {"seen": 4})


def test_restarts_and_replaced_binaries(world, serve, tmp_path):
    server = serve("apiserver")
    attach(world, server)
    server.get("/get/dev/pods", "alice")
    server.close()
    eventually(lambda: world.weir.server()["inside"]["lane"] == "off", "it is noticed that nobody listens")
    replaced = tmp_path / "replaced"
    shutil.copy(program("apiserver"), replaced)
    server = serve("apiserver", binary=replaced)
    eventually(lambda: world.weir.server()["inside"]["lane"] == "see", "the new one is looked into")
    assert [process["pid"] for process in world.weir.server()["inside"]["processes"]] == [server.process.pid]
    server.get("/get/dev/pods", "alice", 2)
    assert seen(world) == {"seen": 3}


def test_another_agent_takes_over(world, serve):
    """What is pinned sees on while there is no agent; the next one's programs see nothing twice."""
    server = serve("apiserver")
    attach(world, server)
    world.weir.kill()
    server.get("/get/dev/pods", "alice", 2)
    world.weir.start()
    eventually(lambda: world.weir.server()["inside"]["lane"] == "see", "the next agent looks into it")
    server.get("/get/dev/pods", "alice", 3)
    assert seen(world) == {"seen": 5}
    world.weir("detach", "web")
    assert server.get("/get/dev/pods", "alice") == ["200 HTTP/2.0 /get/dev/pods"]


def test_see_decides_as_in_a_dry_run(world, serve):
    """By the server's own user, and nothing is held."""
    server = serve("apiserver")
    attach(world, server)
    world.weir("limit", "set", "user", "--qps", "0.001", "--burst", "2")
    trace = world.trace()
    assert server.get("/get/dev/pods", "alice", 4) == [OK] * 4
    assert server.get("/get/dev/pods", "bob", 4) == [OK] * 4
    assert said(trace.end(), "user", "decision") == [
        (user, decision) for user in ("alice", "bob") for decision in ["passed"] * 2 + ["dry_run_shed"] * 2]
    status = world.weir.server()
    assert (status["passed"], status["shed"], status["dry_run_shed"]) == (4, 0, 4)
    assert not status.get("held_record")


def test_exempt_groups(world, serve):
    """As the server knows them."""
    server = serve("apiserver")
    attach(world, server, options=("--exempt-group", "all"))
    world.weir("limit", "set", "user", "--qps", "0", "--burst", "0")
    assert server.get("/get/dev/pods", "alice", 3) == [OK] * 3
    status = world.weir.server()
    assert (status["exempt"], status["dry_run_shed"]) == (3, 0)


@pytest.mark.parametrize("name", ["apiserver", "plain"])
def test_health_checks(world, serve, name):
    """They are exempt, where their path is spelled plainly: of another, the server may make another one."""
    server = serve(name)
    attach(world, server)
    world.weir("limit", "set", "total", "--qps", "0", "--burst", "0")
    for path in "/healthz", "/livez", "/readyz", "/livez/etcd", "/healthz/" + "x" * 55, "/readyz?verbose&exclude=" + "x" * 100:
        server.get(path)
    assert (world.weir.server()["exempt"], world.weir.server()["dry_run_shed"]) == (6, 0)
    for path in "/healthzz", "/livezz", "/readyzz", "/a/healthz", "/health", "/livez/a..b", "/readyz/a;b", "/healthz/" + "x" * 56:
        server.get(path)
    assert (world.weir.server()["exempt"], world.weir.server()["dry_run_shed"]) == (6, 8)


def with_length(data, size):
    return len(data).to_bytes(size, "big") + data


def hello(random):
    """A client's first record of TLS 1.2: it has two ciphers, one curve, and a signature for each cipher."""
    extensions = bytes.fromhex("000a 0004 0002 001d  000b 0002 0100  000d 0008 0006 0403 0804 0401")
    body = b"\x03\x03" + random + b"\0" + with_length(bytes.fromhex("c02b c02f"), 2) + b"\x01\0" + with_length(extensions, 2)
    return b"\x16\x03\x01" + with_length(b"\x01" + with_length(body, 3), 2)


def test_a_handshake_costs_nothing(world, serve):
    """Not even where its random bytes look like the ends of requests: to Go's server they are none."""
    server = serve("plain")
    attach(world, server)
    world.weir("limit", "set", "total", "--qps", "0", "--burst", "0")
    with server.place.client_ns.entered():
        client = socket.create_connection((server.place.authority.strip("[]"), server.port), timeout=60)
    with client:
        client.sendall(hello(b"\n" * 32))
        assert client.recv(1) == b"\x16"
    assert not world.weir.server().get("held_record")


def test_what_is_read_inside_is_counted_once(world, serve):
    """Its TLS records are not its requests once more: in the history, in top's totals and in status' share of TLS."""
    server = serve("apiserver")
    attach(world, server, "once")  # a name of its own: the history has all servers that were called web
    eventually(lambda: world.weir.server("once")["rates"], "the agent has looked")
    before = world.weir.server("once")["records_passed"]
    server.get("/list/dev/pods", "alice", 6)
    after = world.weir.server("once")
    assert after["records_passed"] > before and after["rates"]["inside"] == after["rates"]["requests"] > 0
    (row,) = world.weir.json("history", "once", "--by", "server", "--sum")["rows"]
    assert row["requests"] == 6
    (total,) = world.weir.json("top", "once", "--once", "--interval", "100ms")["servers"]
    assert (total["requests"], total["records"], total["inside"]) == (6, after["records_passed"], True)
    assert "100%" in world.weir("status").splitlines()[1].split()


def test_any_go_server_refuses(world, serve):
    server = serve("plain")
    refuse(world, server)
    world.weir("limit", "set", "total", "--qps", "0.001", "--burst", "6")
    assert server.get("/a", times=10) == ["200 HTTP/2.0 /a"] * 6 + ["429"] * 4
    assert server.get("/a", times=3, protocol="http1") == ["429"] * 3
    assert seen(world) == {"seen": 13, "answered": 7}
    assert world.weir.server()["shed"] == 7
    world.weir("pause", "web")
    assert server.get("/a") == ["200 HTTP/2.0 /a"]
    world.weir("detach", "web")
    assert server.get("/a") == ["200 HTTP/2.0 /a"]


def test_any_go_server_forbids(world, serve):
    """What a limit never lets pass."""
    server = serve("plain")
    refuse(world, server)
    world.weir("limit", "set", "total", "--deny")
    assert server.get("/a", times=2) == ["403"] * 2
    assert server.get("/a", protocol="http1") == ["403"]


def test_who_cannot_be_read_is_not_refused(world, serve):
    """Where more than one request in 10,000 cannot be read, weir would refuse by what it does not know. A few say nothing."""
    server = serve("apiserver")
    attach(world, server, mode="auto")
    server.get("/get/dev/pods", "unmapped", 9)
    assert "could not be read in its memory" not in (world.weir.server()["inside"]["why"] or "")
    server.get("/get/dev/pods", "unmapped")
    eventually(lambda: "10 of 10 requests could not be read in its memory" in (world.weir.server()["inside"]["why"] or ""),
               "it is said")
    assert world.weir.server()["inside"]["lane"] == "see"


def test_a_server_that_has_restarted_can_be_read(world, serve):
    """What could not be read before is not held against it, however often its processes are looked for."""
    server = serve("apiserver")
    attach(world, server, mode="auto")
    server.get("/get/dev/pods", "unmapped", 10)

    def is_blind():
        return "could not be read in its memory" in (world.weir.server()["inside"]["why"] or "")
    eventually(is_blind, "it is said")
    server.close()
    server = serve("apiserver")
    eventually(lambda: [process["pid"] for process in world.weir.server()["inside"]["processes"]] == [server.process.pid],
               "the new one is looked into")
    eventually(lambda: not is_blind(), "it is another one")
    time.sleep(12)  # they are looked for each ten seconds
    assert not is_blind()


def test_answer_where_the_kernel_does_not_allow_it(world, serve):
    server = serve("plain")
    attach(world, server, mode="auto")
    server.get("/a")
    eventually(lambda: world.weir.server()["inside"]["lane"] != "off", "it is looked into when TLS has come")
    inside = world.weir.server()["inside"]
    if inside["lane"] == "answer":
        pytest.skip("this kernel allows it")
    assert inside["lane"] == "see"
    assert "registers" in inside["why"]
    world.keep()
    world.weir("detach", "web")
    refused = world.weir.refused("attach", "web", "--port", server.port, "--netns", server.place.server_ns.path,
                                 "--inside", "answer")
    found = re.search(r"the kernel lets no program write a server's registers: (.*)\. Use --inside hold$", refused.strip())
    assert found and found[1] in ("it is locked down", "Linux 6.18 and later do")
    assert "--write-memory" not in refused  # this server could not be made to refuse by memory either


def test_a_share_of_the_connections(world, serve, tmp_path):
    """What is asked for is kept, and changed in place."""
    server = serve("plain")
    attach(world, server, mode="auto", options=("--inside-share", "5%"))
    assert world.weir.server()["inside"]["share"] == 5
    for share in "0", "0%", "101", "5%%", "%", "":
        assert "--inside-share" in world.weir.refused("attach", "other", "--port", 8444, "--inside-share", share,
                                                      status=2)
    assert "needs --inside" in world.weir.refused("attach", "other", "--port", 8444, "--inside", "off", "--inside-share", "5%",
                                                status=2)
    world.weir("detach", "web")
    policy = tmp_path / "web.yaml"
    text = "apiVersion: weir/v1\nkind: Throttle\nmetadata: {name: web}\nspec:\n  listen: ['*:8443']\n" \
        f"  netns: {server.place.server_ns.path}\n  inside: auto\n"
    for share, line in (20, "  insideShare: 20\n"), (60, "  insideShare: 60\n"), (100, ""):
        policy.write_text(text + line)
        world.weir("apply", "-f", policy)
        assert world.weir.server()["inside"]["share"] == share
    policy.write_text(text + "  insideShare: 101\n")
    assert "insideShare" in world.weir.refused("apply", "-f", policy)


@pytest.mark.alone
def test_who_asks_from_an_address(world, serve):
    """The penalty box knows of users who are seen inside, though here nobody is refused: with a second one at an address, nobody is held."""
    server = serve("apiserver", world.veth())
    attach(world, server, options=("--xdp", "generic"))
    world.weir.run("limit", "set", "user", "--qps", 5, "--burst", 5, "--penalty", "exponential:1s..8s")  # with a warning

    def box():
        ((key, value),) = Maps(world.pins).entries("boxes").items()
        assert socket.inet_ntop(socket.AF_INET6, key[:16]) == f"::ffff:{server.place.client_address}"
        return [int.from_bytes(value[at:at + 8], "little") for at in (0, 8)]
    server.get("/get/dev/pods", "alice")
    alice, others = box()
    assert alice and not others
    server.get("/get/dev/pods", "bob")
    bob, others = box()
    assert bob not in (0, alice) and others


@pytest.mark.alone
def test_refused_servers(world, serve):
    place = world.loopback_elsewhere()
    echo = world.echo(place)
    refused = world.weir.refused("attach", "web", "--port", echo.port, "--netns", place.server_ns.path, "--inside", "see")
    assert "not a program that Go has made" in refused
    assert world.weir.servers() == []
    attached = world.weir.run("attach", "web", "--port", 8443, "--netns", place.server_ns.path, "--inside", "see")
    assert attached.returncode == 0
    assert world.weir.server()["inside"]["why"] == "no process listens there yet"


@pytest.mark.alone
def test_uninstall(world, serve):
    server = serve("plain")
    attach(world, server)
    world.weir.kill()
    world.weir("uninstall")
    assert not any(world.pins.glob("net-*/inside*"))
    assert server.get("/a") == ["200 HTTP/2.0 /a"]
