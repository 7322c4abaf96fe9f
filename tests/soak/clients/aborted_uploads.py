# SPDX-License-Identifier: GPL-2.0
"""Bodies of which a part comes, and then the end: by a RST, or by a FIN."""
import asyncio

WEIGHT = 2


async def visit(visit):
    connection = await visit.connect(user=visit.user(), place=visit.place())
    for _ in range(visit.chance.randint(0, 2)):
        await connection.exchange(visit.path())
    request = connection.request(visit.path(), "PUT", visit.chance.randbytes(50_000))
    await connection.send(request.data[:visit.chance.randrange(1, len(request.data))])
    await asyncio.sleep(visit.chance.random() / 10)
    visit.chance.choice((connection.reset, connection.leave))()
