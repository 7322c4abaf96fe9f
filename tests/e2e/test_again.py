# SPDX-License-Identifier: GPL-2.0
"""Requests that are lost behind weir, and come again as others: each that is served has been charged."""
import collections
import time

import pytest

from lib.loss import TABLE, Loss
from lib.process import eventually
from lib.raw import ACK, PSH, RawClient

pytestmark = pytest.mark.together

BURST = 2


def get(path, user):
    return b"GET /%s HTTP/1.1\r\nHost: x\r\nX-Remote-User: %s\r\n\r\n" % (path, user)


def post(path, user, body, length):
    return b"POST /%s HTTP/1.1\r\nHost: x\r\nX-Remote-User: %s\r\n%s\r\n\r\n" % (path, user, length) + body


def chunked(path, user, size, body):
    return post(path, user, b"%04x\r\n" % size + body + b"\r\n0\r\n\r\n", b"Transfer-Encoding: chunked")


def bodies(user):
    """The same bytes but for a number, which says whether requests of SECRET are in the body or behind it."""
    secret = get(b"secret", user)
    padded = b"a" * 11 + b"\r\n0\r\n\r\n" + 2 * secret
    length = b"Content-Length: %03d"
    return {
        "length": tuple(post(b"livez", user, 2 * secret, length % n) for n in (2 * len(secret), 0)),
        "chunk": tuple(chunked(b"regular", user, n, padded) for n in (len(padded), 11)),
    }


def stories(user):
    """What is lost, and what comes in its place, of the same length. `livez` is free; of others there are more than a user has."""
    free, regular, secret = (get(path, user) for path in (b"livez/a", b"regular", b"secrets"))
    assert len(free) == len(regular) == len(secret)
    found = bodies(user)
    pairs = {
        "first": (free + regular, secret + regular),
        "second": (regular + free, regular + secret),
        "both": (free + free, secret + secret),
        "first_and_last": (free + regular + free, secret + regular + secret),
        "last_of_three": (free + free + regular, free + secret + regular),
        "length": found["length"],
        "behind_a_chunk": found["chunk"],
        "behind_a_chunk_and_another": tuple(free + text for text in found["chunk"]),
    }
    return {name: (before + 2 * free, after + 2 * secret) for name, (before, after) in pairs.items()}


def cut(data, pieces):
    at = [n * len(data) // pieces for n in range(pieces + 1)]
    return [(start, data[start:end]) for start, end in zip(at, at[1:])]


def say(clients, which):
    """Each the first or the second of its story, all of it."""
    for client, (pieces, story) in clients:
        for at, data in cut(story[which], pieces):
            client.send(data, at=client.next + at, flags=PSH | ACK)
            time.sleep(0.002)


def test_something_else_comes_again(world):
    site = world.site(world.veth())
    site.attach()
    site.limit("user", burst=BURST)
    clients = []
    for pieces in 1, 2, 3:
        for name in stories(b""):
            client = RawClient(site.place, site.server.port, source_port=40000 + len(clients))
            world.at_end(client.close)
            clients.append((client, (pieces, stories(f"{name}-{pieces}".encode())[name])))
    loss = Loss(site.place.server_ns)
    loss.nft(f"add rule inet {TABLE} input tcp dport {site.server.port} meta length > 60 drop\n")
    say(clients, 0)
    time.sleep(0.3)
    assert not site.server.requests
    site.place.server_ns.run("nft", "flush", "chain", "inet", TABLE, "input")
    for _ in range(10):
        say(clients, 1)
        time.sleep(0.1)
        for client, _ in clients:
            client.receive()

    def counts():
        return collections.Counter(request.fields["x-remote-user"] for request in list(site.server.requests)
                                   if not request.target.startswith("/livez"))

    eventually(lambda: len(counts()) > len(clients) / 2, "the server has read what most of them have said")
    served = counts()
    assert max(served.values()) <= BURST, served
