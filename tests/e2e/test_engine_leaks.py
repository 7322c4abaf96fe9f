# SPDX-License-Identifier: GPL-2.0
"""Seats of limits on requests in flight are given back however a request, its connection, or weir ends."""
import contextlib
import json
import random
import socket
import struct
import subprocess
import sys

import pytest

from lib.process import eventually
from test_load import in_threads

pytestmark = pytest.mark.together

TCP_CLOSE = 7  # a state of TCP_INFO
LIMITS = (("slow", ("--key", "user", "--in-flight", 1000)), ("all", ("--key", "total", "--in-flight", 1000)),
          ("read-only", ("--key", "source,user", "--verb", "get", "--in-flight", 1000)))

SLOW_NODE = """
require("http").createServer((request, response) => {{
    console.log(`- ${{request.method}} ${{request.url}} 200`);
    setTimeout(() => response.end("late\\n"), 600000);
}}).listen({port}, "{address}", 1024);
"""

ASK = """
import socket, sys, time
held = []
for i in range(20):
    held.append(socket.create_connection((sys.argv[1], int(sys.argv[2]))))
    held[-1].sendall(b"GET /killed-%d?held=1 HTTP/1.1\\r\\nHost: x\\r\\nX-Remote-User: killed\\r\\n\\r\\n" % i)
print("asked", flush=True)
time.sleep(600)
"""


def limit(site):
    for name, words in LIMITS:
        site.weir("limit", "set", name, *words)


def taken(site):
    metrics = site.weir.metrics()["weir_limit_in_flight"]
    return [metrics[name, "web"] for name, _ in LIMITS]


def map_entries(site, name):
    (pin,) = site.weir.pins.glob(f"net-*/{name}")
    dump = subprocess.run(["bpftool", "map", "dump", "pinned", pin, "--json"], check=True, stdout=subprocess.PIPE,
                          text=True)
    return [entry["formatted"] for entry in json.loads(dump.stdout)]


def connections(namespace, port, state):
    """The ends of sockets on this side and on the other one."""
    return {tuple(line.split()[-2:]) for line in namespace.run("ss", "-Htn", "state", *state, port).splitlines()}


def half_ended(site):
    """What the server still has of connections that its client has ended."""
    port = site.server.port
    served = connections(site.place.server_ns, f"sport = :{port}", ("connected", "exclude", "time-wait"))
    kept = connections(site.place.client_ns, f"dport = :{port}", ("established",))
    return {(client, server) for server, client in served} - kept


def check_nothing_taken(site):
    """
    With the end of a server's socket, and not some time later: where no socket tells its end, a RST is believed after ten seconds.
    An answer that a client has got has given back its seat before.
    """
    eventually(lambda: not half_ended(site), "the server's sockets have ended where their clients have")
    assert taken(site) == [0] * len(LIMITS), "an in-flight counter does not read 0"
    assert not [seat for entry in map_entries(site, "busy") for seat in entry["value"]["seats"] if seat["taken"]]
    assert not [entry for entry in map_entries(site, "in_flight") if entry["value"]["word"] & 0xffffffff]


def reset(client):
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def ask_and_reset(client, i):
    client.ask(f"/reset-{i}?delay_ms=30")
    reset(client)


def ask_and_close(client, i):
    client.ask(f"/close-{i}?delay_ms=30")
    client.close()


def ask_and_half_close(client, i):
    client.ask(f"/half-{i}?delay_ms=10")
    client.end_of_requests()
    client.read()
    client.expect_end()
    client.close()


def be_served(client, i):
    client.drive(3, f"/served-{i}")
    client.close()


def be_served_in_chunks(client, i):
    client.get(f"/chunks-{i}?chunked=1&size=100000")
    client.close()


def stop_in_the_answer(client, i):
    client.ask(f"/long-{i}?size=3000000")
    client.socket.recv(1000)
    reset(client)


def stop_in_the_body(client, i):
    client.send(client.head(f"/body-{i}", "POST", Content_Length=100000) + b"x" * 5000)
    reset(client)


def pipeline(client, i):
    for n in range(4):
        client.ask(f"/pipe-{i}-{n}?delay_ms=5")
    reset(client) if i % 2 else client.end_of_requests()
    if not i % 2:
        client.rest()


def server_resets(client, i):
    client.ask(f"/server-resets-{i}?reset=1")
    with contextlib.suppress(ConnectionError):
        client.rest()
    client.close()


def server_closes(client, i):
    client.get(f"/server-closes-{i}?close=1")
    client.close()


WAYS = (ask_and_reset, ask_and_close, ask_and_half_close, be_served, be_served_in_chunks, stop_in_the_answer,
        stop_in_the_body, pipeline, server_resets, server_closes)


def mix(site, seed, n=120):
    """Many connections at once, each of which ends in its own way."""
    chance = random.Random(seed)
    ways = [chance.choice(WAYS) for _ in range(n)]
    clients = [site.client(f"user-{i % 7}") for i in range(n)]

    def one(i):
        with contextlib.suppress(ConnectionError, EOFError):
            ways[i](clients[i], i)
        return True

    in_threads(one, n)


def check_mix(site):
    limit(site)
    mix(site, 1)
    check_nothing_taken(site)
    assert site.limit_of("all")["admitted"] > 100


def clients_with_seats(site, n=10):
    """Clients whose requests have seats."""
    clients = [site.client("alice") for _ in range(n)]
    for i, client in enumerate(clients):
        client.ask(f"/{i}?held=1")
    eventually(lambda: taken(site)[0] == n, f"{n} seats are taken")
    return clients


@pytest.mark.parametrize("translated", [False, True])
def test_resets(site, translated):
    """Each frees its seat as soon as the server's socket has got it, whether or not the server answers ever."""
    limit(site)
    site.weir("limit", "set", "user", "nobody", "--qps", 0, "--burst", 0)
    clients = [site.client() for _ in range(10)]
    for i, client in enumerate(clients):
        if translated:
            assert client.get(f"/refused-{i}", X_Remote_User="nobody") == 429
        client.ask(f"/{i}?held=1", X_Remote_User="alice")
    eventually(lambda: taken(site)[0] == 10, "ten seats are taken")
    for client in clients:
        reset(client)
    check_nothing_taken(site)


def has_ended(sock):
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == bytes([TCP_CLOSE])


@pytest.mark.alters
def test_the_link_drops(world):
    """The server gives up, and its sockets end without a packet that anyone could see."""
    site = world.site(world.veth())
    site.attach()
    limit(site)
    clients_with_seats(site, 2)
    site.place.client_ns.ip("link", "set", "eth0", "down")
    for connection in site.server.connections:
        connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 500)
        connection.socket.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    eventually(lambda: all(has_ended(connection.socket) for connection in site.server.connections), "its sockets have ended")
    check_nothing_taken(site)


def test_a_mix(site):
    check_mix(site)


def test_a_mix_over_veth(world):
    site = world.site(world.veth())
    site.attach()
    check_mix(site)


def test_a_mix_while_agents_come_and_go(site):
    limit(site)
    for seed in range(3):
        site.weir.kill()
        mix(site, seed, 60)
        site.weir.start()
        mix(site, seed + 10, 30)
    check_nothing_taken(site)


def test_a_client_is_killed(site):
    limit(site)
    with subprocess.Popen(site.place.client_ns.command(sys.executable, "-c", ASK, site.place.address,
                                                       str(site.server.port)),
                          stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout.readline() == "asked\n"
        eventually(lambda: taken(site)[0] == 20, "twenty seats are taken")
        client.kill()
    site.server.gate.set()
    check_nothing_taken(site)


def test_a_server_is_killed(world):
    place = world.loopback()
    site = world.site(place, world.real_server("node", place, text=SLOW_NODE))
    site.attach()
    limit(site)
    clients = [site.client("alice") for _ in range(10)]
    for client in clients:
        client.ask("/late")
    eventually(lambda: taken(site)[0] == 10, "ten seats are taken")
    site.server.process.kill()
    for client in clients:
        with contextlib.suppress(ConnectionError):
            client.rest()
        client.close()
    check_nothing_taken(site)


def test_detached_and_attached_again(site):
    limit(site)
    clients = clients_with_seats(site)
    site.weir("detach", "web", "--force")
    site.attach()
    limit(site)
    assert taken(site)[0] == 0
    site.server.gate.set()
    assert [client.read().status for client in clients] == [200] * 10
    mix(site, 5, 40)
    check_nothing_taken(site)


def test_deleted_and_set_again(site):
    """What requests of the limit before still have is none of the new one's."""
    limit(site)
    client = site.client("alice")
    client.ask("/?held=1")
    eventually(lambda: taken(site)[0] == 1, "a seat is taken")
    site.weir("limit", "delete", "slow")
    site.weir("limit", "set", "slow", *LIMITS[0][1])
    assert site.limit_of("slow")["in_flight"] == 0
    site.server.gate.set()
    assert client.read().status == 200
    check_nothing_taken(site)


def test_paused_and_resumed(site):
    limit(site)
    clients = [site.client("alice") for _ in range(4)]
    for i, client in enumerate(clients):
        client.ask(f"/{i}?held=1")
        if i == 1:
            eventually(lambda: taken(site)[0] == 2, "two seats are taken")
            site.weir("pause")
    eventually(lambda: site.server.served() == 4, "all are being served")
    assert taken(site)[0] == 2
    site.weir("resume")
    site.server.gate.set()
    assert [client.read().status for client in clients] == [200] * 4
    check_nothing_taken(site)
