# SPDX-License-Identifier: GPL-2.0
"""Interfaces come and go."""
import asyncio

from lib.process import run

WEIGHT = 1


async def upset(site, chance):
    name = site.places.server_ns.name
    site.note("an interface comes")
    await asyncio.to_thread(run, "ip", "-n", name, "link", "add", "soak0", "type", "veth", "peer", "name", "soak1")
    await asyncio.to_thread(run, "ip", "-n", name, "link", "set", "soak0", "up")
    await asyncio.sleep(chance.random())
    site.note("an interface goes")
    await asyncio.to_thread(run, "ip", "-n", name, "link", "del", "soak0")
