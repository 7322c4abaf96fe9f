# SPDX-License-Identifier: GPL-2.0
"""The server of a soak: answers as the request's target asks (lib.http), and tells what it serves as it does.

    server.py CERTIFICATE KEY PORT[:tls]...

A line on stdout for each thing that happens, times in ns of the monotonic clock:

    b ID NS     it has the head of a request (behind an upgrade: a line)
    e ID NS     its answer is about to be whole: the last byte goes out after this
    ? WHAT      something that is no request
"""
import asyncio
import os
import socket
import ssl
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from http_stream import Stream  # noqa: E402
from keepalive import keep_alive  # noqa: E402
from lib.http import expected_body, parameters, parse_head  # noqa: E402

BACKLOG = 4096
SEND_BYTES = 1 << 15  # what this program has written has been sent, but for little


def tell(*words):
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


class Connection:
    def __init__(self, receive, send, reset):
        self.stream = Stream(receive)
        self.send = send
        self.reset = reset

    async def serve(self):
        try:
            while await self.serve_one():
                pass
        except (ConnectionError, EOFError, ssl.SSLError):
            pass
        except (ValueError, KeyError, IndexError) as error:
            tell("?", repr(error))
            self.reset()

    async def serve_one(self):
        """False when the connection is to be closed."""
        head = await self.stream.until(b"\r\n\r\n")
        if head is None:
            return False
        first, fields = parse_head(head)
        method, target, version = first.split(" ")
        wish = parameters(target) if method != "CONNECT" else {"id": target.partition(".")[0]}
        tell("b", wish["id"], time.monotonic_ns())
        if fields.get("expect") == "100-continue":
            await self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "upgrade" in wish:
            return await self.repeat(wish["id"], b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                                                 b"Upgrade: websocket\r\n\r\n")
        if method == "CONNECT":
            return await self.repeat(wish["id"], b"HTTP/1.1 200 OK\r\n\r\n")
        body = await self.stream.body(fields)
        return await self.answer(method, target, version, fields, body, wish)

    async def repeat(self, number, head):
        """Another protocol: each line goes back. It begins with its number."""
        tell("e", number, time.monotonic_ns())
        await self.send(head)
        while (line := await self.stream.until(b"\n")) is not None:
            number = line.partition(b" ")[0].decode()
            tell("b", number, time.monotonic_ns())
            tell("e", number, time.monotonic_ns())
            await self.send(line + b"\n")
        return False

    async def answer(self, method, target, version, fields, body, wish):
        if "delay_ms" in wish:
            await asyncio.sleep(int(wish["delay_ms"]) / 1000)
        if "reset" in wish:
            tell("e", wish["id"], time.monotonic_ns())
            self.reset()
            return False
        keep = version == "HTTP/1.1" and fields.get("connection") != "close" and "close" not in wish
        last = make_answer(method, expected_body(target, body), keep, "chunked" in wish)
        if len(last) > 1 << 15:
            await self.send(last[:-1])
            last = last[-1:]
        tell("e", wish["id"], time.monotonic_ns())
        await self.send(last)
        return keep


def make_answer(method, body, keep, chunked):
    head = [b"HTTP/1.1 200 OK"]
    if not keep:
        head.append(b"Connection: close")
    if chunked:
        head.append(b"Transfer-Encoding: chunked")
        half = len(body) // 2
        body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (body[:half], body[half:]) if piece)
        body += b"0\r\n\r\n"
    else:
        head.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(head) + b"\r\n\r\n" + (b"" if method == "HEAD" else body)


async def serve_plain(loop, sock):
    def reset():
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with sock:
        await Connection(lambda: loop.sock_recv(sock, 1 << 16), lambda data: loop.sock_sendall(sock, data), reset).serve()


async def serve_tls(reader, writer):
    async def send(data):
        writer.write(data)
        await writer.drain()

    await Connection(lambda: reader.read(1 << 16), send, writer.transport.abort).serve()
    writer.close()


async def accept(loop, listener, tasks):
    while True:
        sock, _ = await loop.sock_accept(listener)
        task = loop.create_task(serve_plain(loop, sock))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


def listen(port):
    listener = socket.create_server(("::", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True)
    listener.setblocking(False)
    # Connections have these from their listener.
    keep_alive(listener)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
    return listener


async def main(certificate, key, ports):
    loop = asyncio.get_running_loop()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    tasks = set()
    for port in ports:
        number, _, tls = port.partition(":")
        if tls:
            await asyncio.start_server(serve_tls, sock=listen(int(number)), ssl=context)
        else:
            tasks.add(loop.create_task(accept(loop, listen(int(number)), tasks)))
    tell("listening")
    await asyncio.Event().wait()


asyncio.run(main(*sys.argv[1:3], sys.argv[3:]))
