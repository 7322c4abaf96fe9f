# SPDX-License-Identifier: GPL-2.0
"""A client that shows weir segments which its server never takes: nobody gets past a limit by that."""
import time

import pytest

from lib.loss import POST, TABLE, Loss
from lib.raw import MD5, RawClient

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


DECOYS = {
    "lost_in_the_firewall": lambda client: {},
    "old_timestamp": lambda client: {"tsval": client.clock() - 100_000},
    "old_acknowledgement": lambda client: {"ack": client.peer - 1_000_000},
    "acknowledges_what_was_never_sent": lambda client: {"ack": client.peer + 1_000_000},
    "signed": lambda client: {"options": MD5},
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
