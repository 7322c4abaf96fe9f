# SPDX-License-Identifier: GPL-2.0
"""SYNs from many addresses that are not the sender's own."""
import json
import socket
import struct


def hardware_address(namespace, device="eth0"):
    (link,) = json.loads(namespace.ip("-j", "link", "show", device))
    return bytes.fromhex(link["address"].replace(":", ""))


def total(data):
    """The sum of its words in ones' complement, folded."""
    words = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while words >> 16:
        words = (words & 0xffff) + (words >> 16)
    return words


def frame_of(ends, server, port):
    """A SYN from 0.0.0.0, with right checksums. ends: the hardware addresses of the receiver and the sender."""
    address = socket.inet_aton(server)
    ip = bytearray(struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, 0, 0x4000, 64, 6, 0, bytes(4), address))
    tcp = bytearray(struct.pack("!HHIIBBHHH", 40000, port, 0, 0, 5 << 4, 2, 1000, 0, 0))
    struct.pack_into("!H", ip, 10, 0xffff - total(ip))
    struct.pack_into("!H", tcp, 16, 0xffff - total(struct.pack("!4sHH", address, 6, 20) + tcp))
    return bytearray(b"".join(ends) + b"\x08\x00" + ip + tcp)


def flood(namespace, place, port, sources):
    """A SYN from each of these addresses, as numbers; returns how many were sent."""
    frame = frame_of([hardware_address(place.server_ns), hardware_address(namespace)], place.address, port)
    sent = 0
    with namespace.entered():
        out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    with out:
        out.bind(("eth0", 0))
        for source in sources:
            # What the address adds to both sums, the IP header's id and the sequence number take away.
            rest = 0xffff - total(source.to_bytes(4, "big"))
            struct.pack_into("!H", frame, 18, rest)
            struct.pack_into("!I", frame, 26, source)
            struct.pack_into("!I", frame, 38, rest)
            out.send(frame)
            sent += 1
    return sent
