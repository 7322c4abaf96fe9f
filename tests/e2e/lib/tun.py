# SPDX-License-Identifier: GPL-2.0
"""A tunnel between two namespaces: at each end a device without Ethernet frames."""
import fcntl
import os
import select
import struct
import threading

from lib.netns import Place

TUNSETIFF = 0x400454ca
IFF_TUN, IFF_NO_PI = 1, 0x1000


def open_tun(namespace, address, device="tun0"):
    with namespace.entered():
        fd = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TUN | IFF_NO_PI))
    namespace.ip("addr", "add", f"{address}/24", "dev", device)
    namespace.ip("link", "set", device, "up")
    return fd


class Tunnel:
    def __init__(self, server_ns, client_ns):
        self.place = Place(server_ns, client_ns, "10.8.0.1", "10.8.0.2")
        self.ends = open_tun(server_ns, self.place.address), open_tun(client_ns, self.place.client_address)
        self.stop = os.pipe()
        self.thread = threading.Thread(target=self.carry)
        self.thread.start()

    def carry(self):
        other = {self.ends[0]: self.ends[1], self.ends[1]: self.ends[0]}
        while True:
            ready, _, _ = select.select([*self.ends, self.stop[0]], [], [])
            if self.stop[0] in ready:
                return
            for fd in ready:
                os.write(other[fd], os.read(fd, 65536))

    def close(self):
        os.write(self.stop[1], b".")
        self.thread.join()
        for fd in (*self.ends, *self.stop):
            os.close(fd)


def answered_by_tunnel(world):
    """A place where what comes to the server comes as frames, and its answers leave by a tunnel."""
    place = world.veth()
    world.at_end(Tunnel(place.server_ns, place.client_ns).close)
    place.server_ns.ip("route", "add", f"{place.client_address}/32", "dev", "tun0")
    return place
