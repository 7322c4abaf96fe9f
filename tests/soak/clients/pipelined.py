# SPDX-License-Identifier: GPL-2.0
"""Several requests at once, answers in their order. A 429 before others ends the connection."""
WEIGHT = 2


async def visit(visit):
    connection = await visit.connect(user=visit.user(), place=visit.place())
    for _ in range(visit.chance.randint(1, 4)):
        requests = [connection.request(visit.path(), visit.chance.choice(("GET", "HEAD", "DELETE")))
                    for _ in range(visit.chance.randint(2, 8))]
        await connection.send(b"".join(request.data for request in requests))
        for _ in requests:
            await connection.read()
            if connection.closing:
                return await connection.expect_end()
