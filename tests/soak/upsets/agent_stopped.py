# SPDX-License-Identifier: GPL-2.0
"""The agent is told to end, and another one takes over."""
import asyncio

WEIGHT = 1


async def upset(site, chance):
    await site.stop_agent()
    await asyncio.sleep(chance.random())
    await site.start_agent()
