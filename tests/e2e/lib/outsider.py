# SPDX-License-Identifier: GPL-2.0
"""A TCP end that writes whole frames, at an address that no interface has: nobody answers for it but itself."""
import json
import random
import socket
import struct
import time

from lib.process import eventually
from lib.raw import ACK, PSH, RST, SYN, checksum, tcp_segment

ETHERTYPES = {socket.AF_INET: b"\x08\x00", socket.AF_INET6: b"\x86\xdd"}
HOP_BY_HOP, TCP, DESTINATION = 0, 6, 60
PADDING = bytes([1, 4, 0, 0, 0, 0])
MSS = bytes([2, 4, 5, 0])
TRIES, TRY_S = 3, 0.15


def mac(namespace, device):
    return bytes.fromhex(json.loads(namespace.ip("-j", "link", "show", device))[0]["address"].replace(":", ""))


def extension_chain(kinds):
    """The first next-header, and the IPv6 extension headers of these kinds, of eight bytes each."""
    following = [*kinds[1:], TCP]
    return [*kinds, TCP][0], b"".join(bytes([kind, 0]) + PADDING for kind in following[:len(kinds)])


class Outsider:
    """One connection from a port by chance."""

    def __init__(self, place, port):
        self.place, self.port = place, port
        self.family = place.family
        self.address = place.address.rpartition(":" if ":" in place.address else ".")[0]
        self.address += ":99" if ":" in place.address else ".99"
        (server_ns, _), (client_ns, device) = place.devices()
        self.macs = mac(server_ns, "eth0"), mac(client_ns, device)
        server_ns.ip("neigh", "replace", self.address, "lladdr", self.macs[1].hex(":"), "dev", "eth0", "nud", "permanent")
        self.ends = [socket.inet_pton(self.family, address) for address in (self.address, place.address)]
        self.ports = random.randrange(1024, 65000), port
        with client_ns.entered():
            self.frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                        socket.htons(int.from_bytes(ETHERTYPES[self.family], "big")))
        self.frames.bind((device, 0))
        self.first = self.next = random.getrandbits(32)
        self.peer = 0
        self.acked = self.next
        self.stream = b""
        self.answer_options = b""  # of the SYN-ACK
        # How it sends, from here on.
        self.to_mac, self.tags = self.macs[0], b""
        self.extensions, self.no_length = (), False

    def close(self):
        self.send(flags=RST)
        self.frames.close()

    def ip(self, segment):
        if self.family == socket.AF_INET:
            header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(segment), 1, 0x4000, 64, TCP, 0) + b"".join(self.ends)
            return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + segment
        first, chain = extension_chain(self.extensions)
        length = 0 if self.no_length else len(chain) + len(segment)
        return struct.pack("!IHBB", 6 << 28, length, first, 64) + b"".join(self.ends) + chain + segment

    def send(self, data=b"", at=None, flags=ACK, ack=None, options=b""):
        """A segment at `at`, else where the stream goes on, by which that is not moved."""
        options += bytes(-len(options) % 4)
        segment = tcp_segment(self.ends, self.ports, self.next if at is None else at, self.peer if ack is None else ack,
                              flags, options, data)
        self.frames.send(self.to_mac + self.macs[1] + self.tags + ETHERTYPES[self.family] + self.ip(segment))

    def receive(self):
        """Takes what has come, and acknowledges data."""
        while True:
            try:
                frame = self.frames.recv(1 << 16, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            if frame[12:14] != ETHERTYPES[self.family]:
                continue
            if self.family == socket.AF_INET:
                protocol, source, dest, header = frame[23], frame[26:30], frame[30:34], 20
                end = 14 + int.from_bytes(frame[16:18], "big")
            else:
                protocol, source, dest, header = frame[20], frame[22:38], frame[38:54], 40
                end = 54 + int.from_bytes(frame[18:20], "big")
            if protocol == TCP and [dest, source] == self.ends:
                self.take(frame[14 + header:end])

    def take(self, tcp):
        source, dest, seq, ack, offset, flags = struct.unpack("!HHIIBB", tcp[:14])
        if (dest, source) != self.ports:
            return
        offset = (offset >> 4) * 4
        data = tcp[offset:]
        if flags & ACK and (ack - self.acked) & 0xffffffff < 1 << 31:
            self.acked = ack
        if flags & SYN:
            self.peer = (seq + 1) & 0xffffffff
            self.answer_options = tcp[20:offset]
        elif data and seq == self.peer:
            self.peer = (self.peer + len(data)) & 0xffffffff
            self.stream += data
            self.send()

    def begin(self, data=b"", options=MSS):
        """A SYN, until it is answered."""
        def answered():
            self.send(data, flags=SYN, ack=0, options=options)
            self.listen()
            return self.peer

        eventually(answered, "the SYN is answered")
        self.next = (self.first + 1) & 0xffffffff

    def open(self):
        self.begin()
        self.send()

    def listen(self, seconds=TRY_S):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.receive()
            time.sleep(0.005)

    def insist(self, data):
        """Sends data as the next of the stream, a few times, until the server acknowledges it. Was it?"""
        end = (self.next + len(data)) & 0xffffffff
        for _ in range(TRIES):
            self.send(data, flags=ACK | PSH)
            self.listen()
            if self.acked == end:
                self.next = end
                return True
        return False
