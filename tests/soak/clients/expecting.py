# SPDX-License-Identifier: GPL-2.0
"""`Expect: 100-continue`: the body comes when it is asked for, or no more when the answer is there before."""
WEIGHT = 1


async def visit(visit):
    connection = await visit.connect(user=visit.user(), place=visit.place())
    for _ in range(visit.chance.randint(1, 4)):
        body = visit.chance.randbytes(visit.chance.randint(1, 20_000))
        request = connection.request(visit.path(), "POST", body, fields=[("Expect", "100-continue")], echo=1)
        head = len(request.data) - len(body)
        await connection.send(request.data[:head])
        if await connection.is_continued():
            await connection.send(request.data[head:])
        await connection.read()
        if connection.closing:
            return await connection.expect_end()
