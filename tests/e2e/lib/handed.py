# SPDX-License-Identifier: GPL-2.0
"""Sockets that a service manager makes, and hands over to a server."""
import socket
import subprocess
import sys

from lib.process import PATIENCE_S

MANAGER = """
import socket, sys
cgroup, address, port, to = sys.argv[1:]
open(f"{cgroup}/cgroup.procs", "w").write("0")
listener = socket.create_server((address, int(port)), backlog=128)
socket.send_fds(socket.socket(fileno=int(to)), [b"."], [listener.fileno()])
"""


def listener_of(cgroup, namespace, address, port):
    """One that a process in this cgroup has made, and handed over."""
    here, there = socket.socketpair()
    with here, there:
        command = namespace.command(sys.executable, "-c", MANAGER, cgroup, address, port, there.fileno())
        subprocess.run(command, pass_fds=[there.fileno()], check=True, timeout=PATIENCE_S)
        _, descriptors, _, _ = socket.recv_fds(here, 1, 1)
    return socket.socket(fileno=descriptors[0])
