# SPDX-License-Identifier: GPL-2.0
"""A server of a few lines, which a test makes of it."""
import socket
import threading


class Listener:
    """Whoever comes is served by `serve(sock)`, in a thread of its own."""

    def __init__(self, place, port):
        with place.server_ns.entered():
            self.listener = socket.create_server((place.address, port), backlog=512)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        raise NotImplementedError
