# SPDX-License-Identifier: GPL-2.0
"""A proxy that takes turns with a few connections for the requests of many users: each is limited, and has its own answers."""
import collections
import http.client
import threading

import pytest

from lib.netns import loopback
from lib.nginx import configuration

pytestmark = pytest.mark.together

USERS, EACH, BURST = 8, 6, 3

FRONTS = {
    "haproxy": """
global
    maxconn 1000
defaults
    mode http
    timeout client 60s
    timeout server 60s
    timeout connect 10s
listen front
    bind {listen}
    http-reuse always
    server api API maxconn 3
""",
    "nginx": configuration("""
    upstream api {{ server API; keepalive 4; }}
    server {{
        listen {listen};
        location / {{
            proxy_pass http://api;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_request_buffering off;
        }}
    }}
"""),
}


def answer_of(client, *request):
    """nginx closes a connection on which it has not read all of a body that was refused. It may do so when the next request is on its way."""
    try:
        client.request(*request)
        return client.getresponse()
    except ConnectionError:
        client.close()
        client.request(*request)
        return client.getresponse()


def ask(front, user, size, heard):
    """Requests one after the other, on one connection as long as that lasts."""
    body = (b"%03d" % user) * (size // 3)
    with front.client_ns.entered():
        client = http.client.HTTPConnection(front.address, 9000, timeout=60)
        for i in range(EACH):
            answer = answer_of(client, "POST", f"/{user}/{i}?echo=1", body, {"X-Remote-User": f"u{user}"})
            said = answer.read()
            heard[user, answer.status] += 1
            if answer.status == 200:
                assert said == body
        client.close()


@pytest.mark.parametrize("program", FRONTS)
def test_pool(world, program):
    place = world.veth()
    site = world.site(place)
    site.attach()
    site.limit("user", burst=BURST)
    front = loopback(place.client_ns, 4)
    text = FRONTS[program].replace("API", f"{place.authority}:{site.server.port}")
    world.real_server(program, front, port=9000, text=text)
    heard = collections.Counter()
    askers = [threading.Thread(target=ask, args=(front, user, 300 * 7 ** (user % 4), heard)) for user in range(USERS)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert collections.Counter(r.fields["x-remote-user"] for r in site.server.requests) == {f"u{n}": BURST for n in range(USERS)}
    assert heard == {(user, status): n for user in range(USERS) for status, n in ((200, BURST), (429, EACH - BURST))}
    assert len(site.server.connections) < USERS * EACH
