# SPDX-License-Identifier: GPL-2.0
"""The bytes of a connection as HTTP wants them, for asyncio; what lib.http.Stream is for threads."""


class Stream:
    """receive: a coroutine function that returns the next bytes, b"" at the end."""

    def __init__(self, receive):
        self.receive = receive
        self.buffer = b""

    async def fill(self):
        """False at the end of the stream."""
        data = await self.receive()
        self.buffer += data
        return bool(data)

    def take(self, length):
        taken, self.buffer = self.buffer[:length], self.buffer[length:]
        return taken

    async def until(self, mark):
        """The bytes before the mark, which is consumed; None where there is nothing more."""
        while mark not in self.buffer:
            if not await self.fill():
                if self.buffer:
                    raise EOFError("the stream ended in the middle of a message")
                return None
        taken, _, self.buffer = self.buffer.partition(mark)
        return taken

    async def line(self):
        line = await self.until(b"\r\n")
        if line is None:
            raise EOFError("the stream ended in the middle of a message")
        return line

    async def exactly(self, length):
        parts, missing = [self.take(length)], length
        missing -= len(parts[0])
        while missing > 0:
            data = await self.receive()
            if not data:
                raise EOFError(f"the stream ended {missing} bytes early")
            parts.append(data[:missing])
            self.buffer = data[missing:]
            missing -= len(parts[-1])
        return b"".join(parts)

    async def chunked(self):
        parts = []
        while size := int((await self.line()).partition(b";")[0], 16):
            parts.append(await self.exactly(size))
            if await self.exactly(2) != b"\r\n":
                raise ValueError("a chunk does not end where it says")
        while await self.line():
            pass
        return b"".join(parts)

    async def body(self, fields):
        """The body that goes with a head."""
        if fields.get("transfer-encoding") == "chunked":
            return await self.chunked()
        return await self.exactly(int(fields.get("content-length", 0)))
