# SPDX-License-Identifier: GPL-2.0
"""The agent is killed, and limits stay in force while there is none; another one takes over."""
import asyncio

WEIGHT = 2


async def upset(site, chance):
    site.kill_agent()
    await asyncio.sleep(chance.random() * 2)
    await site.start_agent()
