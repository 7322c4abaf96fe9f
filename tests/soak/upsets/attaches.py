# SPDX-License-Identifier: GPL-2.0
"""A server is detached, by force or so that its connections go on, and attached again."""
import asyncio
import time

WEIGHT = 3


async def upset(site, chance):
    churn = site.servers["churn"]
    for limit in churn.limits:
        limit.unknown()
    if chance.random() < 0.5:
        await site.command("detach", "churn")
        await asyncio.sleep(chance.random())
    churn.reset_ns = 1 << 63  # from here on until the command is done
    await asyncio.to_thread(site.weir.run, "detach", "churn", "--force")  # may have gone by itself
    site.note("churn is detached by force")
    churn.reset_ns = time.monotonic_ns()
    await asyncio.sleep(chance.random())
    await site.attach(churn)
    await site.set_churn()
