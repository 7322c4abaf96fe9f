# SPDX-License-Identifier: GPL-2.0
"""WebSocket-like: after the upgrade lines go back and forth, which are held to the limit of their address."""
from places import LINE_SOURCES

WEIGHT = 2


async def visit(visit):
    connection = await visit.connect(user=visit.user(), source=visit.chance.choice(LINE_SOURCES))
    fields = [("Connection", "Upgrade"), ("Upgrade", "websocket")]
    if await connection.exchange("/socket", fields=fields, upgrade=1) == 101:
        for _ in range(visit.chance.randint(1, 15)):
            await connection.line(b"x" * visit.chance.randint(10, 900))
