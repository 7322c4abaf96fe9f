# SPDX-License-Identifier: GPL-2.0
"""A proxy sends on what an upstream says that its client has made up: a 101 opens no way around a limit."""
import socket
import threading
import time

import pytest

from lib.nginx import configuration
from lib.process import eventually

pytestmark = pytest.mark.together

PROXY = configuration("""
    access_log {directory}/access.log;
    keepalive_requests 1000000;
    server {{
        listen {listen};
        location / {{ return 200 "ok\\n"; }}
        location /upstream {{
            proxy_pass http://UPSTREAM;
            proxy_http_version 1.1;
        }}
    }}
""")
BURST = 5
MANY = 10  # requests in a packet, which a token lets in
GET = b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n"
SWITCHING = b"HTTP/1.1 101 Switching Protocols\r\n%s\r\n"
ANSWERS = [SWITCHING % b"", SWITCHING % b"Connection: Upgrade\r\nUpgrade: x\r\n", SWITCHING % b"Content-Length: 0\r\n"]


def answer(listener):
    """Each connection with the next of the answers, behind which it ends."""
    for said in ANSWERS:
        sock, _ = listener.accept()
        with sock:
            sock.recv(65536)
            sock.sendall(said)


def test_101_of_an_upstream(world):
    place = world.loopback()
    with place.server_ns.entered():
        listener = socket.create_server((place.address, world.port()))
    world.at_end(listener.close)
    threading.Thread(target=answer, args=(listener,), daemon=True).start()
    upstream = f"{place.address}:{listener.getsockname()[1]}"
    site = world.site(place, world.real_server("nginx", place, text=PROXY.replace("UPSTREAM", upstream)))
    site.attach("--hold", "drop")
    site.limit("user", burst=BURST)
    for n in range(len(ANSWERS)):
        with place.client_ns.entered():
            sock = socket.create_connection((place.address, site.server.port), 10, (f"127.0.0.{n + 2}", 0))
        world.at_end(sock.close)
        sock.sendall(GET % b"upstream")
        assert sock.recv(65536).startswith(b"HTTP/1.1 101 ")
        eventually(lambda n=n: site.unread() == {"upgrade": n + 1}, "it is not read on")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(BURST):
            sock.sendall(MANY * (GET % b"again"))
            time.sleep(0.01)
    eventually(lambda: site.packets("held_record") >= len(ANSWERS), "they are withheld")
    served = [line.split(" ")[0] for line in site.server.log()]
    assert all(served.count(f"127.0.0.{n + 2}") == 1 + MANY for n in range(len(ANSWERS))), served
