# SPDX-License-Identifier: GPL-2.0
"""
Some of the packets are lost on their way, in one direction or in both (nftables). Not behind weir, in the server's own
namespace: what comes in place of what the server never got can make a connection one that is held, and not limited.
"""
import asyncio

WEIGHT = 3

RULES = """
table inet soak {{
    chain output {{ type filter hook output priority 0; meta l4proto tcp numgen random mod 1000 < {out} drop; }}
    chain input {{ type filter hook input priority 0; meta l4proto tcp numgen random mod 1000 < {into} drop; }}
}}
"""


async def upset(site, chance):
    namespace = site.places.client_ns
    out, into = (chance.choice((0, 5, 20, 60)) for _ in range(2))
    site.note(f"of 1000 packets {out} are lost that leave {namespace.name}, and {into} that come")
    await asyncio.to_thread(namespace.run, "nft", "-f", "-", input=RULES.format(out=out, into=into))
    await asyncio.sleep(chance.random() * 4)
    await asyncio.to_thread(namespace.run, "nft", "delete", "table", "inet", "soak")
    site.note("no packets are lost")
