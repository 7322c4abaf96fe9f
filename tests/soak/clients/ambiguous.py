# SPDX-License-Identifier: GPL-2.0
"""What two readers could understand differently: a 400, the end, and nothing of it at the server."""
WEIGHT = 1

SPELLINGS = (
    lambda data: data.replace(b"\r\n", b"\n"),
    lambda data: data.replace(b"Host:", b"Host :"),
    lambda data: data.replace(b"Host: ", b"Folded: 1\r\n 2\r\nHost: "),
    lambda data: data.replace(b"Host: ", b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\nHost: "),
    lambda data: data.replace(b"Host: ", b"Content-Length: 5\r\nContent-Length: 6\r\nHost: "),
    lambda data: data.replace(b"Host: ", b"Content-Length: +5\r\nHost: "),
    lambda data: data.replace(b"Host: ", b"Transfer-Encoding: gzip\r\nHost: "),
    lambda data: data.replace(b"HTTP/1.1", b"HTTP/1.9"),
    lambda data: data.replace(b"Host: ", b"X-Nul: \0\r\nHost: "),
    lambda data: b"\xef\xbb\xbf" + data,
)


async def visit(visit):
    connection = await visit.connect(user=visit.user(), place=visit.place())
    for _ in range(visit.chance.randint(0, 3)):
        await connection.exchange(visit.path())
    request = connection.request(visit.path())
    await connection.send(visit.chance.choice(SPELLINGS)(request.data))
    if await connection.read() != 400:
        connection.blame(f"{request} was ambiguous, and was not rejected")
    await connection.expect_end()
