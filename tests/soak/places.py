# SPDX-License-Identifier: GPL-2.0
"""Where the clients and the servers of a site meet: across veth by IPv4 and IPv6, and on loopback."""
import contextlib
import socket

from lib import netns

# Whom what cannot be read is charged to, so that nothing else is charged to them: TLS, and lines behind an upgrade.
TLS_SOURCES = [f"10.9.7.{n}" for n in range(11, 14)]
LINE_SOURCES = [f"10.9.7.{n}" for n in range(21, 25)]


class Place:
    """One way to a site's servers."""

    def __init__(self, namespace, address, client_address):
        self.namespace = namespace
        self.address = address
        self.client_address = client_address
        self.family = socket.AF_INET6 if ":" in address else socket.AF_INET

    def socket(self, source=None):
        with self.namespace.entered():
            sock = socket.socket(self.family)
        sock.setblocking(False)
        if source:
            sock.bind((source, 0))
        return sock


class Places:
    def __init__(self, name):
        self.server_ns = netns.Netns(f"{name}-s")
        self.client_ns = netns.Netns(f"{name}-c")
        ends = netns.add_veth(self.server_ns, self.client_ns, 4)
        self.veth = Place(self.client_ns, *ends)
        for source in TLS_SOURCES + LINE_SOURCES:
            self.client_ns.ip("addr", "add", f"{source}/24", "dev", "eth0")
        for host, namespace in enumerate((self.server_ns, self.client_ns), 1):
            namespace.ip("addr", "add", f"fd00:7::{host}/64", "dev", "eth0", "nodad")
        self.veth6 = Place(self.client_ns, "fd00:7::1", "fd00:7::2")
        self.loopback = Place(self.server_ns, "127.0.0.1", "127.0.0.1")
        self.all = [self.veth, self.veth6, self.loopback]

    def delete(self):
        for namespace in (self.server_ns, self.client_ns):
            with contextlib.suppress(AssertionError):
                namespace.delete()

    def leftovers(self):
        return self.server_ns.leftovers() + self.client_ns.leftovers()
