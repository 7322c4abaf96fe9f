# SPDX-License-Identifier: GPL-2.0
"""Clients that say that they will send nothing more, and read on."""
WEIGHT = 2


async def visit(visit):
    connection = await visit.connect(user=visit.user(), place=visit.place())
    for _ in range(visit.chance.randint(0, 3)):
        await connection.exchange(visit.path())
    request = connection.request(visit.path(), delay_ms=visit.chance.randint(0, 50), size=visit.chance.randint(1, 100_000))
    await connection.send(request.data)
    connection.end_of_requests()
    await connection.read()
    await connection.expect_end()
