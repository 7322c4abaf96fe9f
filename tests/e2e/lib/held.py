# SPDX-License-Identifier: GPL-2.0
"""A TLS server behind weir: what cannot be read, and what became of it."""
from lib.tls import TlsClient, TlsServer


class Held:
    """A TLS server behind weir."""

    def __init__(self, world, place, port=None, listener=None):
        self.world = world
        self.place = place
        self.weir = world.weir
        self.server = TlsServer(place.server_ns, place.address, world.directory, port or world.port(), listener)
        world.at_end(self.server.close)
        world.agent()

    def attach(self, *options, hold="drop"):
        self.weir("attach", "web", "--port", self.server.port, "--netns", self.place.server_ns.path, "--hold", hold,
                  *options)
        self.world.attached()

    def limit(self, name="user", qps=0, burst=0):
        self.weir("limit", "set", name, "--qps", qps, "--burst", burst)

    def client(self, place=None, **options):
        client = TlsClient(place or self.place, self.server.port, **options)
        self.world.at_end(client.close)
        return client

    def records(self):
        """(passed, held, held in dry run), on which `status` and `metrics` agree, but for what comes between them."""
        def said():
            status = self.weir.server("web")
            return tuple(status[key] for key in ("records_passed", "records_held", "records_dry_run_held"))
        before, metrics = said(), self.weir.metrics()["weir_records_total"]
        told = tuple(metrics[decision, "web"] for decision in ("passed", "held", "dry_run_held"))
        if told != before:
            assert all(first <= n <= last for first, n, last in zip(before, told, said()))
        return told

    def packets(self, what):
        return self.weir.server("web")["packets"].get(what, 0)

    def held_s(self):
        return self.weir.metrics()["weir_held_seconds_total"]["web",]
