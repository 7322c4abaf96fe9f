# SPDX-License-Identifier: GPL-2.0
"""Bodies in chunks, with trailers now and then, in one go or a chunk at a time."""
import asyncio

WEIGHT = 2


async def visit(visit):
    connection = await visit.connect(user=visit.user(), place=visit.place())
    for _ in range(visit.chance.randint(2, 10)):
        chunks = [visit.chance.randbytes(visit.chance.randint(1, 3000)) for _ in range(visit.chance.randint(0, 5))]
        trailers = [b"X-Sum: 1"] * visit.chance.randint(0, 2)
        request = connection.request(visit.path(), "POST", chunks=chunks, trailers=trailers, chunked=1, echo=1)
        if visit.chance.random() < 0.5:
            await connection.send(request.data)
        else:
            cut = visit.chance.randrange(1, len(request.data))
            await connection.send(request.data[:cut])
            await asyncio.sleep(0.01)
            await connection.send(request.data[cut:])
        await connection.read()
        if connection.closing:
            return await connection.expect_end()
