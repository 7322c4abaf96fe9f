# SPDX-License-Identifier: GPL-2.0
"""At a server where every number is exact: no client goes away before its answer, and the limits stay on."""
WEIGHT = 5


async def visit(visit):
    connection = await visit.connect("exact", user=visit.user(), place=visit.place())
    for _ in range(visit.chance.randint(5, 60)):
        method = visit.chance.choice(("GET", "HEAD", "POST"))
        await connection.exchange("/", method, b"b" * visit.chance.randint(0, 3000) if method == "POST" else None)
