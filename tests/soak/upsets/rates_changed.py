# SPDX-License-Identifier: GPL-2.0
"""Defaults and limits of single subjects become others, many times."""
import asyncio

WEIGHT = 6


async def upset(site, chance):
    web, exact, tls = (site.servers[name] for name in ("web", "exact", "tls"))
    for _ in range(chance.randint(1, 6)):
        server, name, subject = chance.choice(((web, "user", None), (web, "user", "alice"), (web, "user", "bob"),
                                               (web, "user", "user-3"), (web, "namespace", None), (web, "namespace", "ns2"),
                                               (web, "heavy", None), (web, "heavy", "alice"), (exact, "user", None),
                                               (exact, "user", "user-1"), (tls, "user", None)))
        qps = chance.choice((20, 60) if server is tls else (1, 5, 20, 60))  # who is held must not wait for minutes
        await site.set_rate(server, name, qps, chance.choice((1, 3, 10, 40)), subject=subject)
        await asyncio.sleep(chance.random())
