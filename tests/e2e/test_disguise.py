# SPDX-License-Identifier: GPL-2.0
"""Handshakes that the programs at the device cannot read get past no limit on connections."""
import time

import pytest

from lib.process import eventually
from lib.raw import DESTINATION, SYN, RawClient, RawClient6, with_extensions
from test_admission import NO_PROXY, RATE, attempts, connects, limit
from test_headers import needs_hold

pytestmark = [pytest.mark.together, needs_hold]

PRIORITY = b"\x81\x00\xe0\x00"  # a tag that names no VLAN


class Half(RawClient):
    def handshake(self):
        self.receive()
        return bool(self.peer)


class Half6(Half, RawClient6):
    pass


def tagged(n):
    def spoil(frame):
        frame[12:12] = PRIORITY * n
    return spoil


@pytest.mark.parametrize("kind, disguise", [
    (Half, tagged(2)), (Half, tagged(3)), (Half6, tagged(2)), (Half6, with_extensions([DESTINATION] * 33)),
], ids=["two tags", "three tags", "two tags, IPv6", "33 extension headers"])
def test_what_cannot_be_read(world, kind, disguise):
    """The kernel takes off each tag that names no VLAN, and passes over any number of extension headers."""
    site = world.site(world.veth(6 if kind is Half6 else 4))
    site.attach(*NO_PROXY)
    client = kind(site.place, site.server.port)
    world.at_end(client.close)
    limit(site, "--key", "source", *RATE, "--burst", 1)
    assert connects(site, 2) == 1
    refused = attempts(site)
    client.send(at=client.next + 1, spoil=disguise)
    eventually(lambda: site.packets("unreadable") == 1, "it completes nothing")
    client.source_port += 1
    client.send(at=client.next, flags=SYN, ack=0, spoil=disguise)
    eventually(lambda: site.packets("unreadable") == 2, "nor does it begin anything")
    assert attempts(site) == refused
    assert len(site.server.connections) == 1


@pytest.mark.parametrize("how", [{"fragments": 16}, {"spoil": tagged(2)}], ids=["fragments", "two tags"])
def test_a_dry_run_refuses_nothing(world, how):
    site = world.site(world.veth())
    site.attach(*NO_PROXY)
    limit(site, "--key", "source", *RATE, "--burst", 1)
    client = Half(site.place, site.server.port)
    world.at_end(client.close)
    client.send(at=client.next + 1, **how)
    time.sleep(0.1)
    assert not site.server.connections
    site.weir("dry-run", "web", "on")
    client.send(at=client.next + 1, **how)
    eventually(lambda: len(site.server.connections) == 1, "it is connected")
