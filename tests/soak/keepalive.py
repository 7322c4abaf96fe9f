# SPDX-License-Identifier: GPL-2.0
"""Who waits for the other side finds out that it is gone, though its RST was lost."""
import socket

OPTIONS = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5), (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
)


def keep_alive(sock):
    for option in OPTIONS:
        sock.setsockopt(*option)
