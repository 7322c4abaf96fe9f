# SPDX-License-Identifier: GPL-2.0
"""Connections that are reset by either side, at any moment."""
import asyncio

WEIGHT = 3


async def visit(visit):
    connection = await visit.connect(user=visit.user(), place=visit.place())
    for _ in range(visit.chance.randint(0, 3)):
        await connection.exchange(visit.path())
    how = visit.chance.choice(("before", "asked", "in the answer", "by the server"))
    if how == "by the server":
        connection.may_end = True
        await connection.exchange(visit.path(), delay_ms=20, reset=1)
    elif how != "before":
        request = connection.request(visit.path(), size=200_000, delay_ms=visit.chance.randint(0, 30))
        await connection.send(request.data)
        if how == "in the answer":
            await connection.stream.fill()
        await asyncio.sleep(visit.chance.random() / 20)
    connection.reset()
