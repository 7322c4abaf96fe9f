# SPDX-License-Identifier: GPL-2.0
"""A user of his own for each connection: thousands, in time."""
WEIGHT = 4
NAMES = 30_000


async def visit(visit):
    connection = await visit.connect(user=f"guest-{visit.chance.randrange(NAMES)}", place=visit.place())
    for _ in range(visit.chance.randint(1, 15)):
        await connection.exchange(visit.path())
