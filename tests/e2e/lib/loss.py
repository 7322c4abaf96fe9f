# SPDX-License-Identifier: GPL-2.0
"""Loses exactly the packets that are meant, by nftables rules on their payload."""
import json

# How the payload of a segment begins, at the start of the bytes behind the TCP header.
SHED = "@ih,0,96 0x485454502f312e3120343239"  # HTTP/1.1 429
SERVED = "@ih,0,96 0x485454502f312e3120323030"  # HTTP/1.1 200
REQUEST = "@ih,0,40 0x474554202f"  # GET /
POST = "@ih,0,40 0x504f535420"  # "POST "
DATA_RECORD = "@ih,0,24 0x170303"  # of TLS
FIN = "tcp flags & fin == fin"
BARE_ACK = "tcp flags & (syn | fin | rst | psh) == 0 meta length < 100"

TABLE = "loss"


class Loss:
    """Rules in one namespace. hook: "output" is before weir for a client, "input" is behind it for a server."""

    def __init__(self, namespace):
        self.namespace = namespace
        self.rules = 0
        hooks = "".join(f"chain {hook} {{ type filter hook {hook} priority 0; }}\n" for hook in ("input", "output"))
        self.nft(f"table inet {TABLE} {{\n{hooks}}}\n")

    def nft(self, text):
        self.namespace.run("nft", "-f", "-", input=text)

    def drop(self, hook, match, n=1):
        """Loses the next n packets that match; returns the rule's number."""
        number = self.rules
        self.rules += 1
        self.nft(f"add counter inet {TABLE} lost{number}\n"
                 f"add rule inet {TABLE} {hook} {match} numgen inc mod 1000000 < {n} counter name lost{number} drop\n")
        return number

    def lost(self, number=0):
        listing = json.loads(self.namespace.run("nft", "-j", "list", "counters", "table", "inet", TABLE))
        counters = {c["counter"]["name"]: c["counter"]["packets"] for c in listing["nftables"] if "counter" in c}
        return counters[f"lost{number}"]
