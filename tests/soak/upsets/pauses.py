# SPDX-License-Identifier: GPL-2.0
"""A server is paused, and resumed."""
import asyncio

WEIGHT = 2


async def upset(site, chance):
    churn = site.servers["churn"]
    for limit in churn.limits:
        limit.unknown()
    await site.command("pause", "churn")
    await asyncio.sleep(chance.random())
    await site.command("resume", "churn")
    await site.set_churn()
