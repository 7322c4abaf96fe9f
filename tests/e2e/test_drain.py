# SPDX-License-Identifier: GPL-2.0
"""A server that was detached goes when its last translated connection has ended."""
from lib.process import eventually


def test_drain_begins(draining):
    status = draining.status()
    assert (status["mode"], status["translated"]) == ("draining", 2)
    assert "draining" in draining.weir.refused("limit", "set", "user", "--qps", 1, "--burst", 1)
    assert draining.weir.json("limit", "list") == {"limits": []}


def test_drain_ends(draining):
    for client in draining.clients:
        client.close()
    eventually(lambda: not draining.weir.servers(), "the server is drained")
    assert "is drained" in draining.weir.log()
