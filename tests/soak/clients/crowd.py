# SPDX-License-Identifier: GPL-2.0
"""Users that are always new, more of them than there is room for; some connections wait for room and give up."""
import asyncio

SITES = ("tight",)
IMPATIENCE_S = 5
NAMES = 100_000


async def visit(visit):
    connection = await visit.connect("crowd", place=visit.place())
    connection.may_end = True
    for _ in range(visit.chance.randint(1, 100)):
        user = f"one-{visit.chance.randrange(NAMES)}"
        for _ in range(visit.chance.randint(1, 4)):
            try:
                await asyncio.wait_for(connection.exchange("/", user=user), IMPATIENCE_S)
            except asyncio.TimeoutError:
                return connection.reset()
        await asyncio.sleep(visit.chance.random() / 50)
