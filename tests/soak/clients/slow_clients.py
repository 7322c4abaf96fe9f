# SPDX-License-Identifier: GPL-2.0
"""A request that stops in its middle for a while: in the head, or in the body."""
import asyncio

WEIGHT = 2


async def visit(visit):
    connection = await visit.connect(user=visit.user(), place=visit.place())
    for _ in range(visit.chance.randint(1, 3)):
        request = connection.request(visit.path(), "POST", visit.chance.randbytes(visit.chance.randint(1, 4000)), echo=1)
        cut = visit.chance.randrange(1, len(request.data))
        await connection.send(request.data[:cut])
        await asyncio.sleep(visit.chance.random() * 2)
        await connection.send(request.data[cut:])
        await connection.read()
        if connection.closing:
            return await connection.expect_end()
