# SPDX-License-Identifier: GPL-2.0
"""HTTP/1.0, and `Connection: close`: each answer ends its connection."""
WEIGHT = 1


async def visit(visit):
    version = visit.chance.choice(("HTTP/1.0", "HTTP/1.1"))
    for _ in range(visit.chance.randint(2, 6)):
        connection = await visit.connect(user=visit.user(), place=visit.place())
        await connection.exchange(visit.path(), version=version, fields=[("Connection", "close")])
        await connection.expect_end()
