# SPDX-License-Identifier: GPL-2.0
"""A server behind weir, and everything that is wanted around it."""
from lib.client import Client
from lib.process import eventually


class Site:
    def __init__(self, world, place, server):
        self.world = world
        self.place = place
        self.server = server
        self.weir = world.weir
        self.clients = []

    def attach(self, *options, warning=None):
        """Peers are trusted to name the user unless the options say whom to trust. warning: what is expected on stderr."""
        trust = () if "--trusted-proxy" in options else ("--trusted-proxy", self.place.client_address)
        home = () if self.weir.namespace else ("--netns", self.place.server_ns.path)
        done = self.weir.run("attach", "web", "--port", self.server.port, *home, *trust, *options)
        assert done.returncode == 0 and (warning in done.stderr if warning else not done.stderr), done.stderr
        self.world.attached()

    def limit(self, name, *subject, qps=0, burst):
        """With qps 0 the burst is there once: every count is exact."""
        self.weir("limit", "set", name, *subject, "--qps", qps, "--burst", burst)

    def limit_of(self, name):
        """What `status` says of a limit."""
        (limit,) = [limit for limit in self.status()["limits"] if limit["limit"] == name]
        return limit

    def client(self, user=None, **options):
        client = Client(self.place, self.server.port, user, **options)
        self.world.at_end(client.close)
        self.clients.append(client)
        return client

    def heard(self, status):
        """How many answers of this status all clients have had together."""
        return sum(client.heard[status] for client in self.clients)

    def status(self):
        return self.weir.server("web")

    def packets(self, what):
        return self.status()["packets"].get(what, 0)

    def unanswered(self):
        return self.status()["unanswered"]

    def unread(self):
        return self.status()["unread"]

    def check(self, passed, shed, exempt=0, dry_run_shed=0, rejected=0):
        """`status`, `metrics` and the server's own log all say the same."""
        assert self.weir.counts() == {"passed": passed, "shed": shed, "exempt": exempt, "dry_run_shed": dry_run_shed,
                                      "rejected": rejected, "dry_run_rejected": 0}
        served = passed + exempt + dry_run_shed
        eventually(lambda: self.server.served() >= served, f"the server has logged {served} requests")
        assert self.server.served() == served
