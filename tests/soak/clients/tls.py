# SPDX-License-Identifier: GPL-2.0
"""TLS: a record for each request, held to the limit of its address; none fails."""
from places import TLS_SOURCES

WEIGHT = 2


async def visit(visit):
    connection = await visit.connect("tls", source=visit.chance.choice(TLS_SOURCES))
    for _ in range(visit.chance.randint(1, 12)):
        await connection.exchange("/", size=visit.chance.randint(0, 2000))
