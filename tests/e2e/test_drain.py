# SPDX-License-Identifier: GPL-2.0
"""A server that was detached goes when its last translated connection has ended."""
from lib.process import eventually


IS_DRAINING = ('weir: server "web" is detached and draining, so none of its requests are limited any more. It can be attached again when its '
               'translated connections have ended ("weir detach web --force" resets them)')
THROTTLE = """\
apiVersion: weir/v1
kind: Throttle
metadata: {name: web}
spec: {limits: [{name: user, qps: 1, burst: 1}]}
"""


def test_drain_begins(draining, tmp_path):
    status = draining.status()
    assert (status["mode"], status["translated"]) == ("draining", 2)
    policy = tmp_path / "policy.yaml"
    policy.write_text(THROTTLE)
    for words in (("limit", "set", "user", "--qps", 1, "--burst", 1), ("limit", "delete", "user"), ("pause",), ("pause", "web"),
                  ("dry-run", "web", "on"), ("max-in-flight", "--read-only", 1), ("apply", "-f", policy),
                  ("explain", "GET", "/"), ("attach", "web", "--port", 80, "--netns", draining.place.server_ns.path)):
        assert draining.weir.refused(*words) == IS_DRAINING, words
    assert draining.weir.refused("diff", "-f", policy, status=2) == IS_DRAINING
    assert draining.weir.json("limit", "list") == {"limits": []}


def test_drain_ends(draining):
    for client in draining.clients:
        client.close()
    eventually(lambda: not draining.weir.servers(), "the server is drained")
    assert "is drained" in draining.weir.log()
