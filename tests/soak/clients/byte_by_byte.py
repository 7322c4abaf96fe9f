# SPDX-License-Identifier: GPL-2.0
"""A packet for each byte, or for a few."""
import asyncio

WEIGHT = 1


async def visit(visit):
    connection = await visit.connect(user=visit.user(), place=visit.place())
    for _ in range(visit.chance.randint(1, 3)):
        request = connection.request(visit.path(), "POST", b"body", echo=1)
        step = visit.chance.choice((1, 1, 7, 40))
        for at in range(0, len(request.data), step):
            await connection.send(request.data[at:at + step])
            await asyncio.sleep(0)
        await connection.read()
        if connection.closing:
            return await connection.expect_end()
