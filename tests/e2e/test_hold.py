# SPDX-License-Identifier: GPL-2.0
"""What cannot be read is dropped while it is over its limit: nothing fails, it slows. (Waiting for it: test_pace.py)"""
import contextlib
import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

import pytest

from lib.held import Held
from lib.loss import DATA_RECORD, Loss
from lib.nginx import configuration
from lib.process import PATIENCE_S, end, eventually, run
from lib.tls import TlsClient, TlsServer, TlsSocket, drive_together

HTTP2 = configuration("""
    access_log off;
    server {{
        listen {listen} http2;
        location / {{ return 200 "$request_uri\\n"; }}
    }}
""")

EARLY = configuration("""
    log_format seen "$request_uri";
    access_log {directory}/access.log seen;
    ssl_certificate {directory}/../tls.crt;
    ssl_certificate_key {directory}/../tls.key;
    ssl_protocols TLSv1.3;
    ssl_early_data on;
    server {{
        listen {listen} ssl;
        location / {{ return 200 "ok\\n"; }}
    }}
""")

pytestmark = [pytest.mark.together,
              pytest.mark.skipif("cgroup2" not in Path("/proc/mounts").read_text(), reason="no cgroup2 is mounted")]


@pytest.fixture
def early(world):
    """nginx that takes early data, and what asks it for / in a connection of its own."""
    place, session, request = world.veth(), world.directory / "session", world.directory / "request"
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=weir", "-days", "2",
        "-keyout", world.directory / "tls.key", "-out", world.directory / "tls.crt")
    site = world.site(place, world.real_server("nginx", place, text=EARLY))
    site.attach("--hold", "drop", "--inside", "off")
    text = b"GET / HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n"
    request.write_bytes(text)

    def asking(*options, **given):
        command = place.client_ns.command("openssl", "s_client", "-connect", f"{place.address}:{site.server.port}", "-ign_eof",
                                          "-sess_out", session, *options)
        client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **given)
        world.at_end(lambda: end(client))
        return client

    first = asking(stdin=subprocess.PIPE)
    assert b"200 OK" in first.communicate(text, PATIENCE_S)[0]
    return site, lambda: asking("-sess_in", session, "-early_data", request, stdin=subprocess.DEVNULL)


def test_early_data_is_charged(early):
    """Each connection has a request in what the server gets before it has answered: that is no certificate of the client's."""
    site, asking = early
    site.limit("user", burst=3)
    for _ in range(3):
        said = asking().communicate(timeout=PATIENCE_S)[0]
        assert b"200 OK" in said and b"Early data was accepted" in said
    asking()
    eventually(lambda: site.packets("held_record") > 1, "it is withheld, and comes again")
    assert site.server.served() == 4


@pytest.fixture
def held(world):
    """On loopback, attached."""
    held = Held(world, world.loopback())
    held.attach()
    return held


@pytest.mark.parametrize("kind", ["user", "total"])
@pytest.mark.parametrize("where,family", [("loopback", 4), ("veth", 4), ("veth", 6)])
def test_all_succeed_and_none_before_its_time(world, where, family, kind):
    qps, burst, clients, each = 8, 2, 3, 5
    held = Held(world, world.place(where, family))
    held.attach()
    held.limit(kind, qps=qps, burst=burst)
    before = time.monotonic()
    drive_together([held.client() for _ in range(clients)], each)
    elapsed_s = time.monotonic() - before
    passed, withheld, _ = held.records()
    assert passed == held.server.served() == clients * each
    assert passed <= burst + qps * elapsed_s
    assert 0 < withheld <= passed - burst
    assert held.packets("held_record") >= withheld
    assert 0 < held.held_s() <= clients * elapsed_s
    assert held.weir.server("web")["unread"] == {"tls": clients}


def test_within_the_limit_nothing_is_held(held):
    held.limit(burst=12)
    for _ in range(3):
        held.client().drive(4)
    assert held.records() == (12, 0, 0)
    assert (held.packets("held_record"), held.packets("out_of_order"), held.held_s()) == (0, 0, 0)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_handshakes_cost_nothing(held, version):
    """Nor does the end of a connection."""
    held.limit(burst=5)
    for _ in range(5):
        client = TlsClient(held.place, held.server.port, version)
        client.get("/one")
        client.socket.unwrap()
        client.close()
    for _ in range(5):
        held.client(version=version)
        held.client(version=version).socket.unwrap()
    assert held.records() == (5, 0, 0)


def test_a_client_hello_that_looks_like_lines(held):
    """By chance one in a hundred does. Nobody knows that it is TLS before its server has answered."""
    held.limit(burst=3)
    client = held.client(costs=True)
    assert held.records() == (1, 0, 0)
    client.drive(2)
    assert held.records() == (3, 0, 0)
    held.client()
    waiting = threading.Thread(target=held.client, kwargs={"costs": True})
    waiting.start()
    eventually(lambda: held.records() == (3, 1, 0), "it waits")
    held.weir("pause")
    waiting.join()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_requests_cut_into_short_records(held, version):
    """The first short record of a connection costs a token: or one connection after the other would be served without end."""
    held.limit(burst=2)
    request = b"GET / HTTP/1.1\r\nHost: weir\r\n\r\n"
    clients = [held.client(version=version) for _ in range(4)]
    for client in clients:
        for at in range(0, len(request), 13):
            client.socket.sendall(request[at:at + 13])
    eventually(lambda: held.server.served() == 2, "two are served")
    eventually(lambda: held.records() == (2, 2, 0), "two wait")
    assert held.server.served() == 2


class Piecemeal:
    """A socket that sends TLS 1.3's second hello, behind a change of cipher, in two records. The first is as long as a Finished of CBC."""

    def __init__(self, plain):
        self.plain = plain
        self.recv, self.close = plain.recv, plain.close

    def sendall(self, data):
        change, hello = data[:6], data[11:]
        if change != b"\x14\x03\x03\x00\x01\x01" or data[6] != 22:
            self.plain.sendall(data)
            return
        pieces = [b"\x16\x03\x03" + len(piece).to_bytes(2, "big") + piece for piece in (hello[:112], hello[112:])]
        self.plain.sendall(change + b"".join(pieces))


def test_a_second_hello_in_pieces(held):
    """A client cannot say how long the records are that cost next to nothing."""
    held.server.context.set_ecdh_curve("secp384r1")
    held.limit(burst=4)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with held.place.client_ns.entered():
        plain = socket.create_connection((held.place.address, held.server.port), PATIENCE_S)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client = TlsSocket(Piecemeal(plain), context)
    held.world.at_end(client.close)
    for _ in range(3):
        client.sendall(5 * b"GET / HTTP/1.1\r\n\r\n")
    eventually(lambda: held.server.served() == 10, "two are served")
    eventually(lambda: held.records() == (4, 1, 0), "the hello's second piece and the Finished have cost a token each, and one waits")
    assert held.server.served() == 10


def test_a_padded_handshake(held):
    """What may be a client certificate costs nothing up to 2 KiB; what is beyond costs what requests do."""
    held.limit(burst=1)
    command = held.place.client_ns.command("openssl", "s_client", "-quiet", "-tls1_3", "-record_padding", "4096",
                                           "-connect", f"{held.place.address}:{held.server.port}")
    client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    held.world.at_end(lambda: end(client))
    client.stdin.write(b"GET / HTTP/1.1\r\nHost: weir\r\n\r\n")
    client.stdin.flush()
    eventually(lambda: held.records() == (1, 1, 0), "the Finished has cost a token, and more; the request waits")
    assert held.server.served() == 0


def test_over_the_limit_waits(held):
    """Whatever the limit is when it comes again decides."""
    held.limit(burst=2)
    client = held.client()
    client.drive(2)
    client.ask("/third")
    eventually(lambda: held.packets("held_record") > 2, "it has come again")
    assert (held.records(), held.server.served()) == ((2, 1, 0), 2)
    held.limit(qps=10, burst=3)
    assert client.read() == "/third"
    assert held.records() == (3, 1, 0)


def test_pause_lets_all_through(held):
    held.limit(burst=0)
    clients = [held.client() for _ in range(4)]
    for i, client in enumerate(clients):
        client.ask(f"/{i}")
    eventually(lambda: held.records() == (0, 4, 0), "each is withheld")
    held.weir("pause")
    assert [client.read() for client in clients] == [f"/{i}" for i in range(4)]
    clients[0].drive(10)
    held.weir("resume")
    clients[0].ask("/after")
    eventually(lambda: held.records() == (14, 5, 0), "it is withheld")
    held.weir("pause")
    assert clients[0].read() == "/after"


def test_others_are_not_slowed(world):
    """Each address has its own bucket."""
    place = world.veth()
    world.address(place.client_ns, "10.9.7.77/24")
    held = Held(world, place)
    held.attach()
    held.limit(burst=3)
    noisy = held.client()
    noisy.drive(3)
    noisy.ask("/over")
    eventually(lambda: held.packets("held_record"), "it is withheld")
    held.client(source=("10.9.7.77", 0)).drive(3)
    assert held.records() == (6, 1, 0)
    uses = held.weir.server("web")["top"]
    assert [(use["subject"], use["passed"], use["shed"]) for use in uses] == [(place.client_address, 3, 1)]


def would_have_waited(held):
    """The records of all sources, and those of them that a dry run alone let pass."""
    rows = held.weir.json("top", "web", "--by", "source", "--once")["rows"]
    return sum(row["requests"] for row in rows), sum(row["dry_run"] for row in rows)


def test_dry_run_counts_and_passes(world):
    held = Held(world, world.loopback())
    held.attach("--dry-run")
    held.limit(burst=2)
    held.client().drive(7)
    assert held.records() == (2, 0, 5)
    assert held.packets("held_record") == 0
    assert would_have_waited(held) == (7, 5)
    assert "0 requests would have been, 5 held (TLS and other unreadable traffic)" in held.weir("status")


@pytest.mark.parametrize("hold", ["drop", "auto"])
def test_dry_run_of_a_limit(world, hold):
    held = Held(world, world.loopback())
    held.attach(hold=hold)
    held.weir("limit", "set", "user", "--qps", 0, "--burst", 2, "--dry-run")
    held.client().drive(7)
    assert held.records() == (2, 0, 5)
    assert held.packets("held_record") == 0
    assert would_have_waited(held) == (7, 5)


def test_joined_in_mid_stream(world):
    """Connections that were there before: the first record that begins a packet is the first that counts."""
    held = Held(world, world.loopback())
    client = held.client()
    client.drive(5)
    held.attach()
    held.limit(burst=3)
    client.drive(3)
    assert held.records() == (3, 0, 0)
    client.ask("/over")
    eventually(lambda: held.records() == (3, 1, 0), "it is withheld")
    held.weir("pause")
    assert client.read() == "/over"


def test_long_records_weigh_more(held):
    """6,000 bytes weigh 6 tokens: the bucket owes what it did not have."""
    held.limit(qps=1, burst=2)
    client = held.client()
    before = time.monotonic()
    client.get("/" + "x" * 6000)
    client.get("/next")
    assert time.monotonic() - before >= 5
    assert held.records() == (2, 1, 0)


def test_a_record_ahead_of_its_turn_goes_on(world):
    """Only so does the server tell the client that the one before it is missing."""
    held = Held(world, world.veth())
    held.attach()
    client = held.client()
    client.drive(1)
    loss = Loss(held.place.server_ns)
    loss.drop("input", DATA_RECORD)
    for target in "/lost", "/ahead":
        client.ask(target)
    assert [client.read(), client.read()] == ["/lost", "/ahead"]
    client.drive(1)
    assert loss.lost() == 1
    assert held.packets("out_of_order") == 0
    assert held.records()[0] >= held.server.served() == 4


class Records:
    """A client of records, to a server that says what it hears, and so is one of TLS. An empty line is in each, where only few may cost a token."""

    HELLO = b"\x16\x03\x03\x00\x04\x01\x00\x00\x00"

    def __init__(self, world, place):
        self.weir = world.weir
        port = world.port()
        world.agent()
        with place.server_ns.entered(), socket.create_server((place.address, port)) as listener:
            self.weir("attach", "web", "--port", port, "--netns", place.server_ns.path, "--hold", "drop")
            world.attached()
            with place.client_ns.entered():
                self.socket = socket.create_connection((place.address, port), PATIENCE_S)
            self.server = listener.accept()[0]
        for end in self.socket, self.server:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            world.at_end(end.close)
        threading.Thread(target=self.serve, daemon=True).start()
        self.say(self.HELLO)

    def serve(self):
        with contextlib.suppress(OSError):
            while heard := self.server.recv(1 << 20):
                self.server.sendall(heard)

    @staticmethod
    def record(size):
        return b"\x17\x03\x03" + size.to_bytes(2, "big") + b"\n" * size

    def hear(self, size):
        while size:
            heard = len(self.socket.recv(min(size, 1 << 20)))
            assert heard
            size -= heard

    def say(self, records):
        self.socket.sendall(records)
        self.hear(len(records))

    def say_and_hear(self, records):
        """Both at once, of more than the sockets have room for."""
        hears = threading.Thread(target=self.hear, args=[len(records)])
        hears.start()
        self.socket.sendall(records)
        hears.join()

    def packets(self, what):
        return self.weir.server("web")["packets"].get(what, 0)


def test_tls_is_tls_behind_a_gap(world):
    """What is in its records is no line of a request, whatever was lost between them."""
    place = world.veth()
    client = Records(world, place)
    record = client.record(1000)
    client.say(record)
    client.weir("limit", "set", "total", "--qps", 0.001, "--burst", 20)
    loss = Loss(place.server_ns)
    loss.drop("input", DATA_RECORD)
    for _ in range(4):
        client.socket.sendall(record)
    client.hear(4 * len(record))
    for _ in range(12):
        client.say(record)
    assert loss.lost() == 1
    assert client.packets("held_record") == 0


def test_tls_from_two_cpus(world):
    """A sender and the acknowledgements that it gets put a connection's segments on two CPUs: they cost what their bytes do."""
    client = Records(world, world.loopback())
    upload = client.record(1 << 14) * 1024
    client.weir("limit", "set", "total", "--qps", 0.001, "--burst", len(upload) // 1024 * 2)
    client.say_and_hear(upload)
    assert client.packets("held_record") == 0


def test_tls_in_both_directions(world):
    """A client of the same host acknowledges what its server's socket is only just sending, with bytes of its own."""
    client = Records(world, world.loopback())
    upload = client.record(1 << 14) * 1024
    for _ in range(4):
        client.say_and_hear(upload)
    assert client.packets("out_of_window") == 0


def test_a_server_elsewhere_is_not_ours(world):
    """The same port, addresses and client port in another namespace."""
    held = Held(world, world.loopback())
    held.attach()
    held.limit(burst=3)
    there = world.loopback_elsewhere()
    other = TlsServer(there.server_ns, there.address, world.directory, held.server.port)
    world.at_end(other.close)
    held.client(source=("127.0.0.1", 20001)).drive(3)
    twin = TlsClient(there, other.port, source=("127.0.0.1", 20001))
    world.at_end(twin.close)
    twin.drive(10)
    assert held.records() == (3, 0, 0)
    assert (held.packets("held_record"), held.packets("out_of_order")) == (0, 0)


def test_survives_the_agent(held):
    """It goes on without the agent, and under the next one."""
    held.limit(burst=3)
    client = held.client()
    client.drive(1)
    held.weir.kill()
    client.drive(1)
    held.weir.start()
    client.drive(1)
    client.ask("/over")
    eventually(lambda: held.records() == (3, 1, 0), "it is withheld")
    held.weir("detach", "web")
    assert client.read() == "/over"


@pytest.mark.alone
def test_a_bpffs_that_is_read_only_takes_no_hold_off(world):
    """The hold cannot be changed, and goes on: that is what the status says. It is off when the kernel runs it no more."""
    world.mount_bpffs()
    world.weir.start("off", "--resync", 1)
    held = Held(world, world.loopback())
    held.attach()
    held.limit(burst=3)
    run("mount", "-o", "remount,ro", world.bpffs)
    try:
        def told_why():
            """A look that was under way has found something that it could not write."""
            said = held.weir.server("web")["hold"]
            assert said["on"]
            return "is mounted read-only" in (said["why"] or "") and said
        hold = eventually(told_why, "it is told")
        told = f"TLS and other unreadable traffic is limited as before: {hold['why']}\n"
        assert f"web: {told}" in held.weir("status")
        assert f"warning: {told}" in held.weir.log() and "is not limited" not in held.weir.log()
        client = held.client()
        client.drive(3)
        client.ask("/over")
        eventually(lambda: held.records() == (3, 1, 0), "it is withheld")
    finally:
        run("mount", "-o", "remount,rw", world.bpffs)
    eventually(lambda: held.weir.server("web")["hold"]["why"] is None, "nothing is told")
    assert held.weir.server("web")["hold"]["on"]


def test_http2_without_tls(world):
    """By segments: a connection's preface and its request are one or two."""
    place = world.loopback()
    if not shutil.which("curl"):
        pytest.skip("there is no curl")
    server = world.real_server("nginx", place, text=HTTP2)
    site = world.site(place, server)
    site.attach()
    site.limit("user", qps=2, burst=1)
    before = time.monotonic()
    for i in range(4):
        url = f"http://127.0.0.1:{server.port}/{i}"
        assert place.client_ns.run("curl", "-sS", "--http2-prior-knowledge", "--max-time", PATIENCE_S, url) == f"/{i}\n"
    elapsed_s = time.monotonic() - before
    status = site.status()
    assert status["unread"] == {"http2": 4}
    assert 4 <= status["records_passed"] <= min(8, 1 + 2 * elapsed_s)
    assert status["records_held"] > 0


def test_without_cgroup2_the_rest_works(world):
    """It is said so, in one line."""
    held = Held(world, world.loopback())
    held.attach()
    held.limit(burst=1)
    assert held.weir.server("web")["hold"] == {
        "on": True, "tls": True, "why": None, "elsewhere": None, "asked": "drop", "mode": "drop", "no_pace": "asked for"
    }
    held.weir.start_without_cgroup2()
    held.client().drive(5)
    assert held.records() == (0, 0, 0)
    hold = held.weir.server("web")["hold"]
    assert not hold["on"] and hold["why"].endswith(" is not a directory of the cgroup2 hierarchy")
    assert f"web: TLS and other unreadable traffic is not limited: {hold['why']}\n" in held.weir("status")
    assert held.weir.log().count("is not limited") == 1


def test_once_cgroup2_is_mounted_what_was_attached_before_is_held(world):
    """The state says no cgroup of such a server: `attach` found none."""
    held = Held(world, world.loopback())
    held.attach()
    held.limit(qps=4, burst=1)
    held.weir.kill()
    path = held.weir.state_dir / "state.json"
    state = json.loads(path.read_text())
    for server in state["servers"].values():
        server["cgroup"] = None
    path.write_text(json.dumps(state))
    held.weir.start()
    assert held.weir.server("web")["hold"]["on"]
    held.client().drive(5)
    passed, withheld, _ = held.records()
    assert passed == 5 and withheld > 0
