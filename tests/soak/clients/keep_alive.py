# SPDX-License-Identifier: GPL-2.0
"""Requests without a body, one after the other on one connection, each of another path."""
WEIGHT = 6


async def visit(visit):
    connection = await visit.connect(user=visit.user(), place=visit.place())
    for _ in range(visit.chance.randint(5, 60)):
        await connection.exchange(visit.path())
