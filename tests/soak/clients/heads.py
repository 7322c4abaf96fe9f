# SPDX-License-Identifier: GPL-2.0
"""HEAD: an answer that has a length and no body."""
WEIGHT = 1


async def visit(visit):
    connection = await visit.connect(user=visit.user(), place=visit.place())
    for _ in range(visit.chance.randint(3, 20)):
        await connection.exchange(visit.path(), visit.chance.choice(("HEAD", "GET")), size=visit.chance.randint(0, 5000))
