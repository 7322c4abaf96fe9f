# SPDX-License-Identifier: GPL-2.0
"""Everything that only asks; and commands that are wrong."""
import asyncio

SITES = ("main", "tight")
WEIGHT = 2

QUESTIONS = (("status",), ("status", "--json"), ("metrics",), ("limit", "list"), ("export",), ("version",))
WRONG = (("limit", "set", "user", "--qps", "x", "--burst", "1"), ("detach", "nobody"), ("attach", "web"),
         ("limit", "delete", "nothing", "--server", "web"), ("apply", "-f", "/nowhere"))


async def ask(site, server):
    """Each of them once."""
    for words in QUESTIONS:
        await site.command(*words)
    for words in (("explain", "GET", "/api/v1/namespaces/ns1/pods", "--user", "alice", "--server", server),
                  ("trace", server, "--for", "1", "--json")):
        done = await asyncio.to_thread(site.weir.run, *words)  # explain warns where all is TLS
        if done.returncode:
            site.violate(f"weir {words[0]}: {done.stderr}")


async def upset(site, chance):
    await ask(site, chance.choice(list(site.servers)))
    words = chance.choice(WRONG)
    if (await asyncio.to_thread(site.weir.run, *words)).returncode == 0:
        site.violate(f"weir {' '.join(words)} was not refused")
