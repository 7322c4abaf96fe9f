# SPDX-License-Identifier: GPL-2.0
"""Where packets are sent: a server's namespace and, but on loopback, its clients', with nginx and an agent of its own."""
import collections
import contextlib
import ipaddress
import json
import os
import re
import subprocess
import time

from lib.netns import Netns
from lib.others import RealServer
from lib.process import PATIENCE_S, eventually, run
from lib.weir import BUILD, Weir

SENDER = BUILD / "tests/packets/sender"
PORT = 8080
BURST = 2
STRANGERS = "strangers"  # to whom the address of each of the senders is charged
ROOM_LEAST = 1 << 16
PACKETS_A_CONNECTION = 8  # the least there are, on average, and by far
PORT_FIRST, PORTS = 1024, 64000  # conn.c: which connection has which ends
LINE = re.compile(r'(\d+) "(.*)" (\S+) (\d+)')

NGINX = """
daemon off;
worker_processes 1;
worker_rlimit_nofile 100000;
pid {directory}/nginx.pid;
error_log /dev/null;
events {{ worker_connections 50000; }}
http {{
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    log_format seen '$status "$http_x_remote_user" $remote_addr $remote_port';
    access_log {directory}/access.log seen;
    keepalive_timeout 5s;
    client_header_timeout 5s;
    client_body_timeout 5s;
    send_timeout 5s;
    reset_timedout_connection on;
    keepalive_requests 1000000;
    server {{
        listen {listen} fastopen=1000 backlog=4096;
        location / {{ return 200 "$request_uri\\n"; }}
    }}
}}
"""

# Nobody is at the senders' addresses: on loopback the kernel would say so.
NO_RESETS = """
table inet senders {{
    chain output {{ type filter hook output priority 0; {family} saddr {network} tcp flags rst drop; }}
}}
"""

Lane = collections.namedtuple("Lane", "server client source network")
VETH = {"veth4": Lane("10.77.0.1", "10.77.0.2", "10.78.0.0", "10.78.0.0/16"),
        "veth6": Lane("fd77::1", "fd77::2", "fd78::", "fd78::/64")}
LOOPBACK = {"lo4": Lane("127.0.0.1", "127.0.0.1", "127.78.0.0", "127.78.0.0/16"),
            "lo6": Lane("fd77::1", "fd77::1", "fd78::", "fd78::/64")}
LANES = VETH | LOOPBACK

SYSCTLS = {
    # Everything that Fast Open has, also without a cookie.
    "net.ipv4.tcp_fastopen": 0x603, "net.ipv4.tcp_max_syn_backlog": 65536, "net.core.somaxconn": 65536,
    "net.ipv4.tcp_synack_retries": 1, "net.ipv4.tcp_orphan_retries": 1, "net.ipv4.tcp_fin_timeout": 5,
    # A sender that owns no address is no reason to drop a packet.
    "net.ipv4.conf.all.rp_filter": 0, "net.ipv4.conf.default.rp_filter": 0, "net.ipv4.conf.lo.rp_filter": 0,
    "net.ipv4.conf.lo.route_localnet": 1, "net.ipv4.conf.all.accept_local": 1, "net.ipv4.conf.lo.accept_local": 1,
    # So are many packets that are out of window.
    "net.ipv4.tcp_invalid_ratelimit": 0, "net.ipv4.tcp_challenge_ack_limit": 1 << 30,
}


def mac(namespace, device):
    return json.loads(namespace.ip("-j", "link", "show", device))[0]["address"]


class Site:
    """packets: how many will be sent, so that no connection and no user has to be forgotten."""

    def __init__(self, name, directory, bpffs, packets):
        self.name = name
        self.room = max(ROOM_LEAST, 1 << (packets // PACKETS_A_CONNECTION).bit_length())
        self.lane = LANES[name]
        self.family = "ip6" if ":" in self.lane.server else "ip"
        self.directory = directory / name
        self.directory.mkdir(parents=True)
        self.endings = contextlib.ExitStack()
        try:
            self.build(f"weir-packets-{os.getpid()}-{name}", bpffs)
        except BaseException:
            self.endings.close()
            raise

    def namespace(self, name):
        namespace = Netns(name)
        self.endings.callback(namespace.delete)
        return namespace

    def build(self, name, bpffs):
        self.server_ns = self.namespace(f"{name}-s")
        for key, value in SYSCTLS.items():
            self.server_ns.run("sysctl", "-q", "-w", f"{key}={value}")
        if self.name in VETH:
            self.client_ns = self.namespace(f"{name}-c")
            self.connect()
        else:
            self.client_ns = self.server_ns
            self.loop()
        self.server = RealServer("nginx", self.server_ns, self.lane.server, self.directory, port=PORT, text=NGINX)
        self.endings.callback(self.server.close)
        self.weir = Weir(self.directory, bpffs / name)
        self.limit()

    def connect(self):
        lane, words = self.lane, ["nodad"] if self.family == "ip6" else []
        length = "/64" if self.family == "ip6" else "/16"
        self.server_ns.ip("link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", self.client_ns.name)
        for namespace, address in (self.server_ns, lane.server), (self.client_ns, lane.client):
            namespace.ip("addr", "add", address + length, "dev", "eth0", *words)
            namespace.ip("link", "set", "eth0", "mtu", 9000, "up")
        self.macs = mac(self.client_ns, "eth0"), mac(self.server_ns, "eth0")
        self.server_ns.ip("neigh", "replace", lane.client, "lladdr", self.macs[0], "dev", "eth0", "nud", "permanent")
        self.server_ns.ip("route", "add", lane.network, "via", lane.client, "dev", "eth0")
        self.device = "eth0"

    def loop(self):
        self.macs = "00:00:00:00:00:00", "00:00:00:00:00:00"
        if self.family == "ip6":
            self.server_ns.ip("addr", "add", f"{self.lane.server}/128", "dev", "lo", "nodad")
            self.server_ns.ip("route", "add", "local", self.lane.network, "dev", "lo")
        self.server_ns.run("nft", "-f", "-", input=NO_RESETS.format(family=self.family, network=self.lane.network))
        self.device = "lo"

    def limit(self):
        """The user that a request names is believed. Who names nobody, or is not read, gets nothing."""
        self.weir.start("off", "--connections", self.room)
        self.endings.callback(self.end_weir)
        trust = [word for network in (self.lane.network, self.lane.client) for word in ("--trusted-proxy", network)]
        self.weir("attach", "web", "--port", PORT, "--netns", self.server_ns.path, *trust, "--new-subjects", 0,
                  "--keys", self.room, "--address", f"{self.lane.network},{STRANGERS}")
        self.weir("limit", "set", "user", "--qps", 0, "--burst", BURST)
        self.weir("limit", "set", "user", STRANGERS, "--qps", 0, "--burst", 0)
        self.weir("limit", "set", "busy", "--in-flight", 1000000, "--key", "user")

    def end_weir(self):
        if self.weir.running():
            self.weir("detach", "--all", "--force")
            self.weir.stop()
        for pin in self.weir.pins.parent.glob(self.weir.pins.name):
            run("rm", "-r", pin)

    def send(self, seed, packets, connections, at_once):
        """What the sender says of itself, a number for each word. The run goes on until it is done, however long."""
        words = [SENDER, "--interface", self.device, "--server", self.lane.server, "--port", PORT, "--source",
                 self.lane.source, "--macs", ",".join(self.macs), "--seed", seed, "--packets", packets, "--open", at_once,
                 "--burst", BURST]
        if connections:
            words += ["--connections", connections]
        done = subprocess.run(self.client_ns.command(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        said = done.stdout.splitlines()
        if done.returncode == 2 or done.returncode < 0 or not said:
            raise RuntimeError(f"the sender ended with {done.returncode}")
        return {key: int(value) for key, value in re.findall(r"(\w+)=(-?\d+)", said[-1])}, said[:-1]

    def connection_of(self, address, port):
        """The number that the sender gives to the connection with these ends; None: it is a well-behaved client's."""
        network = ipaddress.ip_network(self.lane.network)
        host = int(ipaddress.ip_address(address)) - int(network.network_address)
        return (host - 1) * PORTS + int(port) - PORT_FIRST if 0 < host < network.num_addresses else None

    def served(self):
        """{user: [connection, ...]}, an entry for each 200 of nginx, when nothing more comes."""
        eventually(self.is_quiet, "nginx has nothing to do")
        users = collections.defaultdict(list)
        with open(self.server.log_path, errors="replace") as lines:
            for line in lines:
                status, user, address, port = LINE.match(line).groups()
                if status == "200":
                    users[user].append(self.connection_of(address, port))
        return users

    def is_quiet(self):
        size = self.server.log_path.stat().st_size
        time.sleep(0.3)
        return self.server.log_path.stat().st_size == size

    def past_limit(self):
        """The same of those that were served more than they may be."""
        allowed = {"-": 0, STRANGERS: 0}
        return {user: requests for user, requests in self.served().items() if len(requests) > allowed.get(user, BURST)}

    def check_rest(self, patience_s):
        """Nothing is in flight, and no connection is known, when the last one has been over for long enough."""
        said = {}

        def rests():
            metrics = self.weir.metrics()
            said.update(connections=sum(metrics["weir_connection_table_entries"].values()),
                        in_flight=sum(metrics.get("weir_limit_in_flight", {}).values()))
            return not any(said.values())

        try:
            eventually(rests, "rest", patience_s)
        except AssertionError:
            pass
        return {what: n for what, n in said.items() if n}

    def close(self):
        self.endings.close()


__all__ = ["LANES", "PATIENCE_S", "Site"]
