# SPDX-License-Identifier: GPL-2.0
"""A client that shows weir segments which its server never takes: nobody gets past a limit by that."""
import struct
import time

import pytest

from lib.loss import POST, TABLE, Loss
from lib.raw import MD5, RawClient, checksum

pytestmark = pytest.mark.together

BURST = 2
DECOY = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 999999\r\n\r\n"


def get(path):
    return b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode()


@pytest.fixture
def raw(world):
    site = world.site(world.veth())
    site.attach()
    site.limit("user", burst=BURST)
    client = RawClient(site.place, site.server.port)
    world.at_end(client.close)
    return site, client


def another_mac(frame):
    frame[5] ^= 1


def bad_ip_checksum(frame):
    frame[24] ^= 1


def cut_off(frame):
    frame[16:18] = struct.pack("!H", len(frame) - 14 + 1)
    frame[24:26] = bytes(2)
    frame[24:26] = struct.pack("!H", checksum(frame[14:34]))


def half_made_checksum(frame):
    pseudo = frame[26:34] + struct.pack("!BBH", 0, 6, len(frame) - 34)
    frame[50:52] = struct.pack("!H", ~checksum(pseudo) & 0xffff)


DECOYS = {
    "lost_in_the_firewall": lambda client: {},
    "old_timestamp": lambda client: {"tsval": client.clock() - 100_000},
    "old_acknowledgement": lambda client: {"ack": client.peer - 1_000_000},
    "acknowledges_what_was_never_sent": lambda client: {"ack": client.peer + 1_000_000},
    "signed": lambda client: {"options": MD5},
    **{spoil.__name__: lambda client, spoil=spoil: {"spoil": spoil}
       for spoil in (another_mac, bad_ip_checksum, cut_off, half_made_checksum)},
}


@pytest.mark.parametrize("kind", DECOYS)
def test_decoys(raw, kind):
    """Behind a decoy that announces a long body, everything would pass for that body."""
    site, client = raw
    if kind == "lost_in_the_firewall":
        Loss(site.place.server_ns).nft(f"add rule inet {TABLE} input {POST} drop\n")
    for i in range(BURST + 3):
        client.send(DECOY, **DECOYS[kind](client))
        time.sleep(0.15)
        client.insist(get(f"{i}"))
    assert 0 < site.server.served() <= BURST
    assert site.weir.counts()["passed"] >= site.server.served()


def test_decoy_and_fragments(raw):
    """The decoy is read, and what takes its place at the server comes in a way that is not."""
    site, client = raw
    Loss(site.place.server_ns).nft(f"add rule inet {TABLE} input {POST} drop\n")
    client.send(DECOY)
    time.sleep(0.15)
    for i in range(BURST + 3):
        client.insist(get(f"{i}"), times=4, **({"fragments": 48} if i == 0 else {}))
    assert 0 < site.server.served() <= BURST
    assert site.unread()["unseen"] == 1


def test_pieces_and_many_at_once(raw):
    """Once weir does not read a connection, requests in tiny pieces are not free, nor are many in a packet cheap."""
    site, client = raw
    client.insist(get("first") + b"GET /half", fragments=48)
    client.insist(b" HTTP/1.1\r\n")
    for piece in b"Host: ", b"x\r\n", b"\r\n":
        client.insist(piece, times=3)
    client.insist(get("many") * 20, times=3)
    assert 0 < site.server.served() <= BURST
