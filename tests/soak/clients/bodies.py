# SPDX-License-Identifier: GPL-2.0
"""Requests with a body of a known length, some too long to be swallowed when they are refused."""
WEIGHT = 3
SIZES = (0, 1, 100, 1400, 5000, 30_000, 60_000, 100_000)


async def visit(visit):
    connection = await visit.connect(user=visit.user(), place=visit.place())
    for _ in range(visit.chance.randint(3, 15)):
        body = visit.chance.randbytes(visit.chance.choice(SIZES))
        await connection.exchange(visit.path(), visit.chance.choice(("POST", "PUT", "PATCH")), body, echo=1)
        if connection.closing:
            return await connection.expect_end()
