# SPDX-License-Identifier: GPL-2.0
"""What looks like TLS or HTTP/2 and never comes to its server makes the requests that come in its place no cheaper."""
import time

import pytest

from lib import raw as lib_raw
from lib.process import eventually
from lib.raw import tcp_segment
from test_hostile import BURST, another_mac, get, half_made_checksum, raw  # pylint: disable=unused-import

pytestmark = pytest.mark.together


def record(kind, length, body=b""):
    return bytes([kind, 3, 3]) + length.to_bytes(2, "big") + body


LONG = record(22, 18000, bytes([1]) + bytes(200))
DECOYS = {"tls": LONG, "http2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(100)}


@pytest.mark.parametrize("spoil", [half_made_checksum, another_mac])
@pytest.mark.parametrize("decoy", DECOYS)
def test_requests_in_the_place_of_what_is_not_read(raw, decoy, spoil):
    site, client = raw
    client.send(DECOYS[decoy], spoil=spoil)
    time.sleep(0.1)
    for i in range(BURST):
        client.insist(get(f"{i}"), times=2)
    client.insist(get("many") * 30, times=2)
    for i in range(BURST + 1):
        for at in range(0, len(get(f"{i}")), 13):
            client.insist(get(f"{i}")[at:at + 13], times=2)
    assert site.server.served() <= BURST


def test_records_in_fragments_with_a_wrong_checksum(raw, monkeypatch):
    """A record of a token and the beginning of a long one: what comes in the place of its body would pass."""
    site, client = raw
    site.limit("user", burst=BURST + 2)
    assert client.insist(get("first"), times=4, fragments=48)
    with monkeypatch.context() as patch:
        def wrong(*what):
            segment = bytearray(tcp_segment(*what))
            segment[16] ^= 1
            return bytes(segment)
        patch.setattr(lib_raw, "tcp_segment", wrong)
        client.send(record(23, 1, b"x") + LONG, fragments=48)
        time.sleep(0.1)
    for i in range(BURST + 4):
        client.insist(get(f"{i}"), times=2, fragments=48)
    assert 0 < site.server.served() <= BURST + 2
    assert site.packets("bad_checksum") == 1


@pytest.mark.parametrize("hold", ["drop", "auto"])
def test_preface_in_a_body(raw, hold):
    """What looks like HTTP/2 is lost on its way, and then all of its preface stands in a request's body."""
    site, client = raw
    site.world.keep()
    site.weir("detach", "web", "--force")
    site.attach("--hold", hold)
    site.limit("user", burst=BURST + 2)
    client.send(DECOYS["http2"], spoil=another_mac)
    time.sleep(0.1)
    preface = DECOYS["http2"][:24]
    assert client.insist(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 24\r\n\r\n", times=4)
    assert client.insist(preface, times=4)
    client.insist(get("many") * 30, times=2)
    for i in range(BURST + 3):
        client.insist(get(f"{i}"), times=2)
    assert 0 < site.server.served() <= BURST + 2


BODY = record(23, 1, b"x") + record(22, 18000)


@pytest.mark.parametrize("how", ["unseen", "tls"])
def test_requests_in_records_of_a_body(raw, how):
    """What is in a request's body looks like records, and announces a long one, which is paid for. What comes behind it are requests."""
    site, client = raw
    site.limit("user", burst=BURST + 1)
    parts = {"fragments": 48} if how == "unseen" else {}
    if how == "tls":
        client.send(LONG, spoil=another_mac)
        time.sleep(0.1)
    assert client.insist(get("first"), times=4, **parts)
    assert client.insist(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(BODY), times=4, **parts)
    assert client.insist(BODY, times=4, **parts)
    client.insist(get("many") * 30, times=2, **parts)
    eventually(lambda: site.server.served() >= BURST, "the server has read them")
    assert site.server.served() == BURST
