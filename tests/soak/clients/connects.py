# SPDX-License-Identifier: GPL-2.0
"""CONNECT: a request like any other, and what comes after it is held."""
from places import LINE_SOURCES

WEIGHT = 1


async def visit(visit):
    connection = await visit.connect(user=visit.user(), source=visit.chance.choice(LINE_SOURCES))
    if await connection.exchange("/", "CONNECT") == 200:
        for _ in range(visit.chance.randint(1, 15)):
            await connection.line(b"y" * visit.chance.randint(10, 900))
