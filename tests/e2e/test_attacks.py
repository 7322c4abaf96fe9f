# SPDX-License-Identifier: GPL-2.0
"""
Ways past a limit that were found from outside, each of which once worked: an nginx's own log says how many requests a user
was served who may have none, or one.
"""
import socket

import pytest

from lib.nginx import configuration
from lib.outsider import DESTINATION, HOP_BY_HOP, MSS, Outsider
from lib.process import PATIENCE_S, eventually
from lib.raw import ACK, PSH, SYN

pytestmark = pytest.mark.together

NGINX = configuration("""
    log_format seen "$status $http_x_remote_user";
    access_log {directory}/access.log seen;
    keepalive_requests 1000000;
    server {{
        listen {listen} fastopen=100 backlog=1024;
        location / {{ return 200 "$request_uri\\n"; }}
    }}
""")
FAST_OPEN = 0x603  # of net.ipv4.tcp_fastopen: clients, servers, listeners that did not ask for it, no cookie wanted
FAST_OPEN_CLIENT = 0x5  # data in a SYN also without a cookie

EXPERIMENT_MAGIC = b"\xf9\x89"
TAGS = {"none": b"", "one": b"\x81\x00\x00\x00", "two": b"\x88\xa8\x00\x00\x81\x00\x00\x00",
        "two_alike": b"\x81\x00\x00\x00\x81\x00\x00\x00"}
ANOTHER_MAC = bytes([2, 1, 2, 3, 4, 5])
SEGMENT, SEGMENTS = 1400, 4
DATA_FIN = bytes([30, 4, 0x20, 0x10])  # MPTCP
CRUMB = 13  # bytes that are free where HTTP/2 is spoken


def get(user, n=1, more=b""):
    return b"GET / HTTP/1.1\r\nHost: x\r\nX-Remote-User: %s\r\n%s\r\n" % (user.encode(), more) * n


class Attacked:
    """An nginx that has Fast Open on: `zero` may have nothing, others one request."""

    def __init__(self, world, family=4):
        self.world = world
        self.place = world.veth(family)
        world.setting(self.place.server_ns, "net.ipv4.tcp_fastopen", FAST_OPEN)
        self.server = world.real_server("nginx", self.place, text=NGINX)
        self.site = world.site(self.place, self.server)
        network = "10.9.7.0/24" if family == 4 else "fd00:7::/64"
        self.site.attach("--trusted-proxy", network, "--address", f"{network},zero")
        self.site.limit("user", burst=1)
        self.site.limit("user", "zero", burst=0)
        self.world = world

    def outsider(self):
        outsider = Outsider(self.place, self.server.port)
        self.world.at_end(outsider.close)
        return outsider

    def served(self, user):
        """When nginx has logged what it got before."""
        witness = f"witness-{len(self.server.log())}"
        with self.place.client_ns.entered():
            connection = socket.create_connection((self.place.address, self.server.port))
        with connection:
            connection.sendall(get(witness))
            assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")
        eventually(lambda: f"200 {witness}" in self.server.log(), "nginx has logged the witness")
        return self.server.log().count(f"200 {user}")


@pytest.fixture
def attacked(world):
    return Attacked(world)


@pytest.fixture
def attacked6(world):
    return Attacked(world, 6)


def test_what_is_counted(attacked):
    """Without a trick: one of a user who may have one, none of `zero`, who is also whoever comes without a name."""
    for user in "one", "zero":
        client = attacked.outsider()
        client.open()
        for _ in range(3):
            client.insist(get(user))
    client = attacked.outsider()
    client.open()
    client.insist(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert attacked.served("one") == 1
    assert attacked.served("zero") == attacked.served("-") == 0


def test_handshake_completed_by_syn_ack(attacked):
    """The kernel makes the socket and drops the packet: it is in SYN_RECV when the requests come."""
    for _ in range(3):
        client = attacked.outsider()
        client.begin()
        client.send(b"x", at=client.first, flags=SYN | ACK)
        client.listen()
        client.insist(get("zero", 30))
    assert attacked.served("zero") == 0


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("chain", ["d", "dddd", "ddddd", "hdddd", "dddddddd", "h0", "hd0"])
def test_ipv6_extension_headers(attacked6, chain, later):
    """d: destination options, h: hop by hop, 0: a payload length of 0 with no option that says another."""
    client = attacked6.outsider()

    def be_odd():
        client.extensions = [{"h": HOP_BY_HOP, "d": DESTINATION}[kind] for kind in chain.rstrip("0")]
        client.no_length = chain.endswith("0")

    if later:
        client.open()
        be_odd()
    else:
        be_odd()
        client.send(flags=SYN, ack=0, options=MSS)
        client.listen()
        client.next = (client.first + 1) & 0xffffffff
        client.send()
    for _ in range(3):
        client.insist(get("zero"))
    assert attacked6.served("zero") == 0


def fast_open(kind, cookie):
    option = bytes([34, 2 + len(cookie)]) + cookie
    experiment = bytes([254, 4 + len(cookie)]) + EXPERIMENT_MAGIC + cookie
    return {"rfc": option, "experiment": experiment, "twice": option * 2, "none": b""}[kind]


def cookie_of(options):
    """That of a SYN-ACK's options, in either form."""
    while options and options[0]:
        if options[0] == 1:
            options = options[1:]
            continue
        size = options[1]
        if options[0] == 34 or (options[0] == 254 and options[2:4] == EXPERIMENT_MAGIC):
            return options[2 if options[0] == 34 else 4:size]
        options = options[size:]
    return b""


@pytest.mark.parametrize("without_cookie", [False, True])
@pytest.mark.parametrize("kind", ["rfc", "experiment", "twice", "none"])
def test_data_in_a_syn(attacked, kind, without_cookie):
    if not without_cookie:
        attacked.world.setting(attacked.place.server_ns, "net.ipv4.tcp_fastopen", 3)
    asking = attacked.outsider()
    asking.begin(options=MSS + fast_open(kind, b""))
    cookie = cookie_of(asking.answer_options)
    for _ in range(3):
        client = attacked.outsider()
        client.begin(get("zero", 8), MSS + fast_open(kind, cookie))
        client.listen()
    assert attacked.served("zero") == 0


def test_fast_open_of_an_ordinary_client(attacked):
    attacked.world.setting(attacked.place.client_ns, "net.ipv4.tcp_fastopen", FAST_OPEN_CLIENT)
    for _ in range(3):
        with attacked.place.client_ns.entered():
            client = socket.socket()
        with client:
            client.settimeout(PATIENCE_S)
            client.sendto(get("zero"), socket.MSG_FASTOPEN, (attacked.place.address, attacked.server.port))
            answer = client.recv(4096)
            assert answer.startswith(b"HTTP/1.1 429 ")
    assert attacked.served("zero") == 0


@pytest.mark.parametrize("tags", TAGS)
def test_frames_with_priority_tags(attacked, tags):
    client = attacked.outsider()
    client.open()
    client.tags = TAGS[tags]
    for _ in range(3):
        client.insist(get("zero"))
    assert attacked.served("zero") == 0


def decoy(user):
    head = b"POST / HTTP/1.1\r\nHost: x\r\nX-Remote-User: %s\r\nContent-Length: 1000000\r\n\r\n" % user.encode()
    return head.ljust(SEGMENT * SEGMENTS, b"z")


def requests_of_a_segment(user):
    """As many as there is room for, and padding, so that a segment ends with a request."""
    n = SEGMENT // len(get(user))
    room = SEGMENT - len(get(user, n - 1)) - len(get(user, 1, b"P: \r\n"))
    return get(user, n - 1) + get(user, 1, b"P: %s\r\n" % (b"p" * room))


@pytest.mark.parametrize("tags", TAGS)
def test_decoy_to_another_address_and_tagged_frames(attacked, tags):
    """The decoy is read, and no socket gets it; what takes its place comes in frames of another shape."""
    client = attacked.outsider()
    client.open()
    client.to_mac = ANOTHER_MAC
    for at in range(0, SEGMENT * SEGMENTS, SEGMENT):
        client.send(decoy("alice")[at:at + SEGMENT], at=client.next + at, flags=ACK | PSH)
    client.listen(0.3)
    client.to_mac, client.tags = client.macs[0], TAGS[tags]
    for _ in range(SEGMENTS):
        if not client.insist(requests_of_a_segment("alice")):
            client.next = (client.next + SEGMENT) & 0xffffffff
    assert attacked.served("alice") <= 1


@pytest.mark.parametrize("option", ["none", "mptcp"])
def test_crumbs_behind_an_mptcp_option(attacked, option):
    """The option is nothing to a server without MPTCP. What is not read for its sake is no freer than what is."""
    client = attacked.outsider()
    client.begin()
    client.send(options={"none": b"", "mptcp": DATA_FIN}[option])
    client.listen()
    request = get("zero")
    for at in range(0, len(request), CRUMB):
        client.insist(request[at:at + CRUMB])
    assert attacked.served("zero") == 0
