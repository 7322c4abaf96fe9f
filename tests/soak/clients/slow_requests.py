# SPDX-License-Identifier: GPL-2.0
"""
Requests that take the server a while, or whose answers are long and read late, under limits of how many there may be at one
time. Some are given up.
"""
import asyncio

WEIGHT = 5


async def visit(visit):
    late = visit.chance.random() < 0.2
    connection = await visit.connect(user=visit.user(), place=visit.place(), receive_bytes=8192 if late else None)
    for _ in range(visit.chance.randint(1, 4)):
        wish = {"size": 3_000_000} if late else {"delay_ms": visit.chance.randint(50, 600)}
        request = connection.request("/slow/x", **wish)
        await connection.send(request.data)
        if late:
            await asyncio.sleep(visit.chance.random())
        if visit.chance.random() < 0.1:
            await asyncio.sleep(visit.chance.random() / 10)
            return visit.chance.choice((connection.reset, connection.leave))()
        await connection.read()
