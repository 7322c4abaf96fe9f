# SPDX-License-Identifier: GPL-2.0
"""Health checks of users who have no token left: no limit is for them."""
WEIGHT = 2


async def visit(visit):
    connection = await visit.connect(user="bob", place=visit.place())
    for _ in range(visit.chance.randint(3, 20)):
        await connection.exchange(visit.chance.choice(("/livez/x", "/", "/livez/y")))
