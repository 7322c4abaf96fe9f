# SPDX-License-Identifier: GPL-2.0
"""The last packets of a site, where there is tcpdump: kept when something was wrong."""
import shutil
import subprocess

FILES, FILE_MB, PACKET_BYTES = 4, 50, 256


class Packets:
    def __init__(self, namespace, directory):
        self.process = None
        if shutil.which("tcpdump"):
            command = namespace.command("tcpdump", "-i", "any", "-n", "-s", PACKET_BYTES, "-C", FILE_MB, "-W", FILES, "-w",
                                        directory / "packets.pcap", "-Z", "root", "tcp")
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                            stderr=subprocess.DEVNULL)

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait()
