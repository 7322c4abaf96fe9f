# SPDX-License-Identifier: GPL-2.0
"""How many requests there may be at one time, and max-in-flight, which is set and taken away."""
import asyncio

WEIGHT = 3


async def upset(site, chance):
    web = site.servers["web"]
    await site.set_in_flight(web, "slow", chance.randint(1, 5))
    await site.set_in_flight(web, "slow-all", chance.randint(4, 20))
    await site.command("max-in-flight", "--read-only", chance.randint(20, 400), "--mutating", 200, "--server", "web")
    await asyncio.sleep(chance.random())
    await site.command("max-in-flight", "--read-only", 0, "--mutating", 0, "--server", "web")
