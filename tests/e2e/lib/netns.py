# SPDX-License-Identifier: GPL-2.0
"""Network namespaces, and the places made of them where a server and its clients meet."""
import contextlib
import ctypes
import json
import os
import socket
from pathlib import Path

from lib.process import run

CLONE_NEWNET = 0x40000000
SYS_BPF = {"x86_64": 321}.get(os.uname().machine, 280)
BPF_PROG_QUERY = 16
TCX_INGRESS, TCX_EGRESS = 46, 47
SETTINGS = "tcp_fastopen", "tcp_syncookies"  # that tests change

libc = ctypes.CDLL(None, use_errno=True)


class ProgQuery(ctypes.Structure):
    """The member `query` of union bpf_attr."""
    _fields_ = [("ifindex", ctypes.c_uint32), ("attach_type", ctypes.c_uint32), ("query_flags", ctypes.c_uint32),
                ("attach_flags", ctypes.c_uint32), ("prog_ids", ctypes.c_uint64), ("count", ctypes.c_uint32),
                ("pad", ctypes.c_uint32 * 9)]


def tcx_programs(ifindex):
    """How many programs run on a device of this thread's namespace; 0 also where the kernel has no tcx."""
    total = 0
    for hook in TCX_INGRESS, TCX_EGRESS:
        query = ProgQuery(ifindex=ifindex, attach_type=hook)
        if libc.syscall(SYS_BPF, BPF_PROG_QUERY, ctypes.byref(query), ctypes.sizeof(query)) == 0:
            total += query.count
    return total


class Netns:
    def __init__(self, name):
        self.name = name
        self.path = f"/run/netns/{name}"
        run("ip", "netns", "add", name)
        self.ip("link", "set", "lo", "up")

    def delete(self):
        run("ip", "netns", "del", self.name)

    def ip(self, *words):
        return run("ip", "-n", self.name, *words)

    def command(self, *words):
        """A command line that runs in this namespace, with the mounts of everybody."""
        return ["nsenter", f"--net={self.path}", *(str(word) for word in words)]

    def run(self, *words, **options):
        return run(*self.command(*words), **options)

    @contextlib.contextmanager
    def entered(self):
        """This thread's new sockets belong to the namespace."""
        with open("/proc/thread-self/ns/net") as home, open(self.path) as there:
            assert libc.setns(there.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
            try:
                yield
            finally:
                assert libc.setns(home.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())

    def devices(self):
        with self.entered():
            return {name for _, name in socket.if_nameindex()}

    def configuration(self):
        """What tests may change: addresses, routes (but those that come with addresses), and how TCP works here."""
        addresses = {f"{link['ifname']} {address['local']}/{address['prefixlen']}" for link in json.loads(self.ip("-j", "addr"))
                     for address in link["addr_info"] if address["scope"] != "link"}
        routes = {line for family in ("-4", "-6") for line in self.ip(family, "route").splitlines()
                  if "proto kernel" not in line}
        with self.entered():
            settings = {f"{name}: {Path('/proc/sys/net/ipv4', name).read_text().strip()}" for name in SETTINGS}
        return addresses | routes | settings

    @contextlib.contextmanager
    def address(self, address, device):
        """One more, for a while."""
        self.ip("addr", "add", address, "dev", device, *(["nodad"] if ":" in address else []))
        yield
        self.ip("addr", "del", address, "dev", device)

    @contextlib.contextmanager
    def setting(self, name, value):
        """A sysctl that is another one for a while."""
        before = self.run("sysctl", "-n", name).strip()
        self.run("sysctl", "-qw", f"{name}={value}")
        yield
        self.run("sysctl", "-qw", f"{name}={before}")

    def leftovers(self):
        """What weir has left on the devices."""
        with self.entered():
            programs = {name: tcx_programs(index) for index, name in socket.if_nameindex()}
        qdiscs = [line for line in self.run("tc", "qdisc", "show").splitlines() if "clsact" in line]
        xdp = [f"xdp on {link['ifname']}" for link in json.loads(self.ip("-j", "link")) if "xdp" in link]
        return xdp + [f"{n} programs on {name}" for name, n in programs.items() if n] + qdiscs


class Place:
    """A server's namespace, its clients' (the same one on loopback), and the addresses by which they meet."""

    def __init__(self, server_ns, client_ns, address, client_address):
        self.server_ns = server_ns
        self.client_ns = client_ns
        self.address = address
        self.client_address = client_address
        self.family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.authority = f"[{address}]" if ":" in address else address

    def devices(self):
        return [] if self.server_ns is self.client_ns else [(self.server_ns, "eth0"), (self.client_ns, "eth0")]

    def namespaces(self):
        return {self.server_ns, self.client_ns}

    def offload(self, *settings):
        """ethtool -K on both ends."""
        for namespace, device in self.devices():
            namespace.run("ethtool", "-K", device, *settings)


def loopback(namespace, family):
    address = "::1" if family == 6 else "127.0.0.1"
    return Place(namespace, namespace, address, address)


def add_veth(server_ns, client_ns, family, subnet=7, device="eth0"):
    """A veth pair, one end in each namespace, ready to be used; returns the server's and the client's address."""
    server_ns.ip("link", "add", device, "type", "veth", "peer", "name", device, "netns", client_ns.name)
    return add_addresses(server_ns, client_ns, family, subnet, device)


def add_addresses(server_ns, client_ns, family, subnet=7, device="eth0"):
    addresses = []
    for host, namespace in enumerate((server_ns, client_ns), 1):
        address = f"fd00:{subnet}::{host}" if family == 6 else f"10.9.{subnet}.{host}"
        length = ("/64", "nodad") if family == 6 else ("/24",)
        namespace.ip("addr", "add", address + length[0], "dev", device, *length[1:])
        namespace.ip("link", "set", device, "up")
        addresses.append(address)
    return addresses


def veth(server_ns, client_ns, family):
    return Place(server_ns, client_ns, *add_veth(server_ns, client_ns, family))
