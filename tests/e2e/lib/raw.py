# SPDX-License-Identifier: GPL-2.0
"""A client that writes its own TCP segments, and so can send what no kernel would."""
import json
import socket
import struct
import time

from lib.process import eventually

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
MD5 = bytes([1, 1, 19, 18]) + bytes(16)
WINDOW = 60000

TCP_REPAIR, TCP_REPAIR_QUEUE, TCP_QUEUE_SEQ, TCP_TIMESTAMP = 19, 20, 21, 24
RECEIVE_QUEUE, SEND_QUEUE = 1, 2
REPAIR_OFF = -1

OURS = 1
NO_RESETS = f"""
table inet raw_client {{
    chain output {{ type filter hook output priority 0; tcp flags rst meta mark != {OURS} drop; }}
}}
"""


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def tcp_segment(ends, ports, seq, ack, flags, options, data):
    """ends, ports: the source's and the destination's."""
    header = struct.pack("!HHIIBBHHH", *ports, seq & 0xffffffff, ack & 0xffffffff, (20 + len(options)) // 4 << 4, flags,
                         WINDOW, 0, 0)
    segment = header + options + data
    pseudo = b"".join(ends) + struct.pack("!BBH", 0, 6, len(segment))
    return segment[:16] + struct.pack("!H", checksum(pseudo + segment)) + segment[18:]


def timestamps(value, echoed):
    return struct.pack("!BBBBII", 1, 1, 8, 10, value & 0xffffffff, echoed & 0xffffffff)


class Impostor:
    """Who sends segments, over IPv4, as if they were a client's: of a socket that is connected."""

    def __init__(self, place, sock):
        self.client = sock
        self.ports = sock.getsockname()[1], sock.getpeername()[1]
        self.ends = [socket.inet_aton(sock.getsockname()[0]), socket.inet_aton(place.address)]
        with place.client_ns.entered():
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
        self.socket.connect((place.address, 0))

    def close(self):
        self.socket.close()

    def numbers(self):
        """The client's next byte, and the one it waits for."""
        self.client.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        numbers = []
        for queue in SEND_QUEUE, RECEIVE_QUEUE:
            self.client.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_QUEUE, queue)
            numbers.append(self.client.getsockopt(socket.IPPROTO_TCP, TCP_QUEUE_SEQ) & 0xffffffff)
        self.client.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, REPAIR_OFF)
        return numbers

    def send(self, flags, seq=0, ack=0, clock=None, data=b"", options=b""):
        """seq, ack, clock: relative to what the client would send; without a clock there is no timestamp."""
        if clock is not None:
            options = timestamps(self.client.getsockopt(socket.IPPROTO_TCP, TCP_TIMESTAMP) + clock, 0) + options
        here, there = self.numbers()
        self.socket.send(tcp_segment(self.ends, self.ports, here + seq, there + ack, flags, options, data))


class RawClient:
    """One connection, over IPv4. The kernel of its namespace knows nothing of it, and must not say so."""

    family = socket.AF_INET
    ethertype = b"\x08\x00"

    def __init__(self, place, port, source_port=44444, syn_data=b"", syn_options=b""):
        self.address = socket.inet_pton(self.family, place.address)
        self.source = socket.inet_pton(self.family, place.client_address)
        self.port, self.source_port = port, source_port
        self.place = place
        place.client_ns.run("nft", "-f", "-", input=NO_RESETS)
        with place.client_ns.entered():
            self.socket = socket.socket(self.family, socket.SOCK_RAW, socket.IPPROTO_TCP)
            self.parts = socket.socket(self.family, socket.SOCK_RAW, socket.IPPROTO_RAW)
            self.frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        for sock in self.socket, self.parts:
            sock.connect((place.address, 0))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, OURS)
        self.next = 0x7fffff00
        self.peer = 0
        self.acked = self.next  # by the server
        self.echoed = 0
        self.stream = b""
        self.packets = 0
        self.began = time.monotonic()
        self.send(syn_data, flags=SYN, tsval=self.clock(), options=syn_options)
        eventually(self.handshake, "the server answers")

    def close(self):
        self.socket.close()
        self.parts.close()
        self.frames.close()

    def clock(self):
        return 1_000_000 + int((time.monotonic() - self.began) * 1000)

    def handshake(self):
        self.receive()
        if not self.peer:
            return False
        self.next += 1
        self.send()
        return True

    def send(self, data=b"", at=None, flags=ACK, ack=None, tsval=None, options=b"", fragments=0, spoil=None):
        """
        A segment at `at` (else where the stream goes on), by which this side's own idea of the stream is not moved.
        fragments: in IP packets of so many bytes. spoil: makes another frame of this one, a bytearray.
        """
        options = timestamps(self.clock() if tsval is None else tsval, self.echoed) + options
        segment = tcp_segment((self.source, self.address), (self.source_port, self.port),
                              self.next if at is None else at, self.peer if ack is None else ack, flags, options, data)
        if spoil:
            self.send_frame(segment, spoil)
        elif fragments:
            self.send_parts(segment, fragments)
        else:
            self.socket.send(segment)

    def send_frame(self, segment, spoil):
        macs = [bytes.fromhex(json.loads(namespace.ip("-j", "link", "show", device))[0]["address"].replace(":", ""))
                for namespace, device in self.place.devices()]
        frame = bytearray(b"".join(macs) + self.ethertype + self.ip_header(segment) + segment)
        spoil(frame)
        self.frames.sendto(frame, ("eth0", 0))

    def ip_header(self, segment):
        def header(check):
            return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(segment), 1, 0x4000, 64, 6, check) + self.source + self.address
        return header(checksum(header(0)))

    def send_parts(self, segment, size):
        self.packets += 1
        for at in range(0, len(segment), size):
            part = segment[at:at + size]
            more = 0x2000 if at + size < len(segment) else 0
            self.parts.send(struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(part), self.packets, at // 8 | more, 64, 6, 0) +
                            self.source + self.address + part)

    def receive(self):
        """Takes what has come, and acknowledges data."""
        while True:
            try:
                packet = self.socket.recv(65536, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            tcp = self.segment_of(packet)
            source, dest, seq, ack, offset, flags = struct.unpack("!HHIIBB", tcp[:14])
            if (source, dest) != (self.port, self.source_port):
                continue
            self.take(seq, ack, flags, tcp[20:(offset >> 4) * 4], tcp[(offset >> 4) * 4:])

    @staticmethod
    def segment_of(packet):
        return packet[(packet[0] & 15) * 4:]

    def take(self, seq, ack, flags, options, data):
        while options and options[0] != 8:
            options = options[1 if options[0] == 1 else options[1]:]
        self.echoed = struct.unpack("!I", options[2:6])[0] if options else 0
        if flags & ACK and (ack - self.acked) & 0xffffffff < 1 << 31:
            self.acked = ack
        if flags & SYN:
            self.peer = seq + 1
        elif data and seq == self.peer & 0xffffffff:
            self.peer += len(data)
            self.stream += data
            self.send()

    def insist(self, data, times=8, **how):
        """Sends data as the next of the stream, again and again until the server has acknowledged it; was it?"""
        end = (self.next + len(data)) & 0xffffffff
        for _ in range(times):
            self.send(data, flags=ACK | PSH, **how)
            until = time.monotonic() + 0.15
            while time.monotonic() < until:
                time.sleep(0.01)
                self.receive()
            if self.acked == end:
                break
        done = self.acked == end
        if done:
            self.next += len(data)
        return done


HOP_BY_HOP, ROUTING, DESTINATION = 0, 43, 60


class RawClient6(RawClient):
    """The same over IPv6; with a checksum that is right whatever stands between the headers."""

    family = socket.AF_INET6
    ethertype = b"\x86\xdd"

    def ip_header(self, segment):
        return struct.pack("!IHBB", 6 << 28, len(segment), 6, 64) + self.source + self.address

    @staticmethod
    def segment_of(packet):
        return packet


def with_extensions(kinds, jumbogram=False):
    """Puts extension headers of eight bytes each, which ask for nothing, into an IPv6 frame; jumbogram: its length is 0."""
    def spoil(frame):
        nothing = {kind: b"\x01\x04" + bytes(4) for kind in (HOP_BY_HOP, DESTINATION)}  # one option, of padding
        nothing[ROUTING] = bytes([253, 0]) + bytes(4)  # of an experimental type, no segments left
        headers = b"".join(bytes([following, 0]) + nothing[kind] for kind, following in zip(kinds, [*kinds[1:], 6]))
        frame[20] = kinds[0]
        frame[18:20] = struct.pack("!H", 0 if jumbogram else len(frame) - 54 + len(headers))
        frame[54:54] = headers
    return spoil
