# SPDX-License-Identifier: GPL-2.0
"""A subject gets a limit of its own, and loses it again."""
import asyncio

WEIGHT = 2


async def upset(site, chance):
    web = site.servers["web"]
    subject = f"user-{chance.randrange(4, 8)}"
    await site.set_rate(web, "user", chance.choice((2, 80)), chance.choice((2, 20)), subject=subject)
    await asyncio.sleep(chance.random() * 2)
    with web.limit("user").deleting(subject):
        await site.command("limit", "delete", "user", subject, "--server", "web")
