# SPDX-License-Identifier: GPL-2.0
"""Requests that take the server a while, under limits of how many there may be at one time; some are given up."""
import asyncio

WEIGHT = 5


async def visit(visit):
    connection = await visit.connect(user=visit.user(), place=visit.place())
    for _ in range(visit.chance.randint(1, 4)):
        request = connection.request("/slow/x", delay_ms=visit.chance.randint(50, 600))
        await connection.send(request.data)
        if visit.chance.random() < 0.1:
            await asyncio.sleep(visit.chance.random() / 10)
            return visit.chance.choice((connection.reset, connection.leave))()
        await connection.read()
