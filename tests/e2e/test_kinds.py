# SPDX-License-Identifier: GPL-2.0
"""Clients of many kinds, and answers of many kinds: each user has as many as the limit allows, and 429s behind them."""
import contextlib
import shutil
import socket
import subprocess

import pytest

from lib.http import Stream, parse_head
from lib.listener import Listener

pytestmark = pytest.mark.together

N, BURST = 6, 4
KEPT = b"Connection: keep-alive\r\n"
ANSWERS = {
    "plain": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n%s\r\nok",
    "not_modified": b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 1000\r\n%s\r\n",
    "empty": b"HTTP/1.1 204 No Content\r\n%s\r\n",
    "reset_content": b"HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n%s\r\n",
    "hints": b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n" * 2 + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n%s\r\nok",
    "processing": b"HTTP/1.1 102 Processing\r\n\r\n" * 3 + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n%s\r\nok",
    "trailers": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n%s\r\n"
                b"4;ext=\"v\"\r\nabcd\r\n0\r\nX-Sum: 12\r\nX-Other: y\r\n\r\n",
    "until_close": b"HTTP/1.1 200 OK\r\nConnection: close\r\n%.0s\r\nuntil the end",
    "early": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n%s\r\nok",
}


class Server(Listener):
    """Answers as the target's name says, and keeps a connection where its client would have that."""

    def __init__(self, place, port):
        self.served = {}
        super().__init__(place, port)

    def serve(self, sock):
        stream = Stream(sock)
        with sock, contextlib.suppress(OSError):
            while (head := stream.until(b"\r\n\r\n")) and self.answer(sock, stream, *parse_head(head)):
                pass
            sock.shutdown(socket.SHUT_WR)
            while stream.fill():
                pass

    def answer(self, sock, stream, first, fields):
        """Does the connection go on?"""
        method, target, version = first.split(" ")
        if fields.get("expect") == "100-continue":
            sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        stream.body(fields)
        user = fields["x-remote-user"]
        self.served[user] = self.served.get(user, 0) + 1
        asked = fields.get("connection", "").lower()
        keeps = asked == "keep-alive" if version == "HTTP/1.0" else asked != "close"
        answer = ANSWERS[target.split("/")[1]] % (KEPT if keeps else b"Connection: close\r\n")
        sock.sendall(answer.split(b"\r\n\r\n")[0] + b"\r\n\r\n" if method == "HEAD" else answer)
        return keeps and b"Connection: close" not in answer


def curl(kind="plain", *options):
    urls = sum((["-o", "/dev/null", "-w", "%{http_code}\\n", "URL" + f"/{kind}/{i}"] for i in range(N)), [])
    return ["curl", "-sS", "-H", "X-Remote-User: USER", *options, *urls]


PYTHON = """
import http.client
c = http.client.HTTPConnection("ADDRESS", PORT)
for i in range(%d):
    c.request("POST", "/plain", iter([b"a" * 9000] * 5), {"X-Remote-User": "USER"}, encode_chunked=True)
    r = c.getresponse()
    r.read()
    print(r.status)
""" % N

NODE = """
const http = require("http"), agent = new http.Agent({keepAlive: true, maxSockets: 1});
let n = 0;
function next() {
    if (n++ == %d)
        return agent.destroy();
    const r = http.request("URL/plain", {agent, method: "POST", headers: {"X-Remote-User": "USER", "Trailer": "X-T"}}, a => {
        console.log(a.statusCode);
        a.resume();
        a.on("end", () => setTimeout(next, 5));
    });
    r.on("error", e => { console.log(e.code); next(); });
    r.write("a".repeat(5000));
    r.addTrailers({"X-T": "v"});
    r.end();
}
next();
""" % N

CLIENTS = {
    **{f"curl-{kind}": curl(kind) for kind in ANSWERS},
    "curl-1.0": curl("plain", "--http1.0"),
    "curl-1.0-kept": curl("plain", "--http1.0", "-H", "Connection: keep-alive"),
    "curl-head": curl("plain", "-I"),
    "curl-body": curl("plain", "--data-binary", "@BODY"),
    "curl-expects": curl("plain", "-H", "Expect: 100-continue", "--data-binary", "@BODY"),
    "curl-chunked": curl("plain", "-H", "Transfer-Encoding: chunked", "--data-binary", "@BODY"),
    "curl-put": ["curl", "-sS", "-H", "X-Remote-User: USER",
                 *sum((["-T", "BODY", "-o", "/dev/null", "-w", "%{http_code}\\n", f"URL/plain/{i}"] for i in range(N)), [])],
    "python": ["/usr/bin/python3", "-c", PYTHON],
    "node": ["node", "-e", NODE],
}


def test_clients(world, tmp_path):
    """All at once. What a client is told is what its server has said, or a 429."""
    place = world.loopback()
    site = world.site(place)
    site.server.port = world.port()
    server = Server(place, site.server.port)
    world.at_end(server.listener.close)
    site.attach()
    site.limit("user", burst=BURST)
    (tmp_path / "body").write_bytes(bytes(100_000))
    words = {"URL": f"http://{place.address}:{site.server.port}", "ADDRESS": place.address, "PORT": str(site.server.port),
             "BODY": str(tmp_path / "body")}
    running = {}
    for name, command in CLIENTS.items():
        for word, value in {**words, "USER": name}.items():
            command = [part.replace(word, value) for part in command]
        if shutil.which(command[0]):
            running[name] = subprocess.Popen(place.client_ns.command(*command), text=True, stdout=subprocess.PIPE)
    said = {name: process.communicate(timeout=60)[0].split() for name, process in running.items()}
    assert server.served == {name: BURST for name in running}
    for name, statuses in said.items():
        assert len(statuses) == N and statuses.count("429") == N - BURST, (name, statuses)
    assert not site.unread()
