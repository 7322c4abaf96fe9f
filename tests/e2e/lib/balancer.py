# SPDX-License-Identifier: GPL-2.0
"""PROXY protocol preambles, a balancer that sends them, and servers that expect them."""
import ipaddress
import socket
import struct

from lib import netns
from lib.nginx import configuration
from lib.server import EchoServer
from lib.tls import TlsServer

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"

HAPROXY = """
global
    maxconn 1000
defaults
    mode {mode}
    timeout client 60s
    timeout server 60s
    timeout connect 10s
listen front
    bind {{listen}}
    server api {authority}:{port} {send}
"""

NGINX = configuration("""
    log_format seen "$connection $request_method $request_uri $status $proxy_protocol_addr";
    access_log {directory}/access.log seen;
    keepalive_requests 1000000;
    server {{
        listen {listen} proxy_protocol;
        location / {{ return 200 "$request_uri\\n"; }}
    }}
""")


def line(source, dest="192.0.2.200"):
    """Version 1."""
    family = 6 if ":" in source else 4
    dest = dest if family == 4 else "2001:db8::200"
    return f"PROXY TCP{family} {source} {dest} 40000 80\r\n".encode()


def binary(source, dest="192.0.2.200", more=b""):
    """Version 2."""
    source = ipaddress.ip_address(source)
    dest = ipaddress.ip_address(dest if source.version == 4 else "2001:db8::200")
    ends = source.packed + dest.packed + struct.pack("!HH", 40000, 80) + more
    return SIGNATURE + bytes([0x21, 0x11 if source.version == 4 else 0x21]) + struct.pack("!H", len(ends)) + ends


def read(connection):
    """Takes the preamble off a connection, however it comes. nginx and HAProxy want to have it in one piece."""
    start = connection.recv(1)
    if start == b"P":
        while connection.recv(1) not in b"\n":
            pass
    elif start:
        head = connection.recv(15, socket.MSG_WAITALL)
        connection.recv(int.from_bytes(head[13:], "big"), socket.MSG_WAITALL)


class PatientServer(EchoServer):
    def serve(self, connection):
        read(connection.socket)
        super().serve(connection)


class PatientTlsServer(TlsServer):
    def serve(self, connection):
        read(connection)
        super().serve(connection)


def haproxy(world, place, port, mode, send):
    """It runs where the clients are; returns it, and the place where they meet it."""
    front = netns.loopback(place.client_ns, 4 if place.family == socket.AF_INET else 6)
    text = HAPROXY.format(mode=mode, send=send, authority=place.authority, port=port)
    return world.real_server("haproxy", front, port=9000, text=text), front


class Balanced:
    """An nginx behind weir, and a HAProxy in the other namespace, where its clients are, too."""

    def __init__(self, world, family=4, mode="http", send="send-proxy"):
        self.world = world
        self.place = world.veth(family)
        self.server = world.real_server("nginx", self.place, text=NGINX)
        self.balancer, self.front = haproxy(world, self.place, self.server.port, mode, send)
        self.site = world.site(self.place, self.server)

    def attach(self, *options):
        self.site.attach("--trusted-proxy", "192.0.2.99", "--proxy-protocol", self.place.client_address, *options)

    def client_address(self, n):
        """Another client's each time; of IPv6, in another /64."""
        if self.place.family == socket.AF_INET:
            return f"127.0.0.{n}"
        address = f"fd00:8:{n}::1"
        self.world.address(self.place.client_ns, f"{address}/128", "lo")
        return address

    def addresses(self):
        """Of the requests that were served, in order, as nginx was told them."""
        return [entry.split(" ")[4] for entry in self.server.log()]
