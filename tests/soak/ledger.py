# SPDX-License-Identifier: GPL-2.0
"""Every request: what its client got, what the server says, and that both agree.

A request is open until its fate is certain. It is served once at most, and never when its client got a 429.
"""
import collections
import itertools
import time

FATES = ("served", "shed", "rejected", "left")  # left: its client went away, or had to


class Request:
    """One request, or one line behind an upgrade."""
    __slots__ = ("id", "server", "user", "source", "namespace", "path", "method", "target", "body", "data", "connection",
                 "sent_ns", "since_ns", "exempt", "fate", "began", "over", "seats")

    def __init__(self, number, connection, path, method):
        self.id = number
        self.connection = connection
        self.server = connection.server
        self.user, self.source = connection.user, connection.source
        self.path, self.method = path, method
        segments = path.split("/")
        self.namespace = segments[4] if path.startswith("/api/v1/namespaces/") and len(segments) > 5 else None
        self.exempt = path.startswith("/livez/")
        self.target = self.body = self.data = None
        self.sent_ns = time.monotonic_ns()
        # A connection that was there before its server was attached is followed later: only new ones are certain.
        self.since_ns = connection.opened_ns if self.server.comes_and_goes else self.sent_ns
        self.fate = None
        self.began = self.over = False
        self.seats = []

    def __str__(self):
        return f"request {self.id} ({self.method} {self.target or self.path}, {self.user or self.source} at {self.server})"


class Ledger:
    def __init__(self, violate):
        self.violate = violate
        self.numbers = itertools.count(1)
        self.open = {}
        self.asked = collections.Counter()     # by server
        self.fates = collections.Counter()     # by (server, fate)
        self.begun = collections.Counter()     # by server: as the server says
        self.lines = collections.Counter()     # by server: of these, what is no request but a line behind an upgrade

    def ask(self, connection, path, method):
        request = Request(next(self.numbers), connection, path, method)
        self.open[request.id] = request
        self.asked[request.server.name] += 1
        return request

    def settle(self, request, fate):
        """What its client knows of it."""
        if request.fate:
            return
        request.fate = fate
        self.fates[request.server.name, fate] += 1
        if fate == "left":
            self.release(request)  # it may go on for a while at the server, but not here
        elif fate == "shed":
            if request.exempt:
                self.violate(f"{request}: a 429, and no limit is for it", request.connection)
            if request.began:
                self.violate(f"{request}: its client got a 429, and the server had it", request.connection)
            del self.open[request.id]
        elif fate == "rejected":
            del self.open[request.id]
        elif request.over:
            del self.open[request.id]

    def server_says(self, line):
        what, number, *rest = line.split(" ", 2)
        if what == "?":
            self.violate(f"the server got what nobody asked for: {line}")
        request = self.open.get(int(number))
        if what == "b":
            self.began(request, number, int(rest[0]))
        elif request:
            self.ended(request)

    def began(self, request, number, at_ns):
        if request is None or request.began:
            self.violate(f"request {number} came to the server after its client got a 429 or a 400, or twice")
        request.began = True
        self.begun[request.server.name] += 1
        self.lines[request.server.name] += request.method == "LINE"
        for limit in () if request.exempt else request.server.limits:
            if wrong := limit.began(request, at_ns):
                self.violate(f"{wrong}: the last one was {request}", request.connection)

    def ended(self, request):
        self.release(request)
        request.over = True
        if request.fate == "served":
            del self.open[request.id]

    def release(self, request):
        request.over = True
        for limit, subject, epoch in request.seats:
            limit.release(subject, epoch, request)
        request.seats.clear()

    def oldest(self):
        """The request that has waited longest for its client to know its fate."""
        return min((r for r in self.open.values() if not r.fate), key=lambda r: r.sent_ns, default=None)

    def unsettled(self):
        """Those of which client and server do not know the same yet."""
        return [r for r in self.open.values() if r.fate != "left"]
