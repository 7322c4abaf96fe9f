# SPDX-License-Identifier: GPL-2.0
"""At a server that is detached, attached, paused and changed by policy files meanwhile."""
WEIGHT = 4


async def visit(visit):
    connection = await visit.connect("churn", user=visit.user(), place=visit.place())
    for _ in range(visit.chance.randint(1, 40)):
        await connection.exchange(visit.path(), delay_ms=visit.chance.choice((0, 0, 0, 20)))
        if connection.closing:
            return await connection.expect_end()
