# SPDX-License-Identifier: GPL-2.0
"""Answers of many packets, read as fast as they come, or slowly through a small window."""
import asyncio

WEIGHT = 1


async def visit(visit):
    slow = visit.chance.random() < 0.5
    connection = await visit.connect(user=visit.user(), place=visit.place(), receive_bytes=8192 if slow else None)
    for _ in range(visit.chance.randint(1, 4)):
        size, chunked = visit.chance.randint(10_000, 300_000), visit.chance.choice(({}, {"chunked": 1}))
        request = connection.request(visit.path(), size=size, **chunked)
        await connection.send(request.data)
        if slow:
            await asyncio.sleep(visit.chance.random())
        await connection.read()
