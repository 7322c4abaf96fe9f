# SPDX-License-Identifier: GPL-2.0
"""Real servers, with a log that says what they saw. Their answer to TARGET is the line TARGET."""
import shutil
import subprocess

import pytest

from lib.nginx import configuration
from lib.process import end, eventually

NGINX = configuration("""
    log_format seen "$connection $request_method $request_uri $status";
    access_log {directory}/access.log seen;
    keepalive_timeout {idle_s}s;
    keepalive_requests 1000000;
    client_max_body_size 0;
    server {{
        listen {listen} backlog=1024;
        location / {{ return 200 "$request_uri\\n"; }}
    }}
""")

HAPROXY = """
global
    log stdout format raw local0
    maxconn 1000
defaults
    mode http
    timeout client {idle_s}s
    timeout http-keep-alive {idle_s}s
    log global
    log-format "%ci:%cp %HM %HU %ST"
frontend web
    bind {listen}
    http-request return status 200 content-type text/plain lf-string "%[path]\\n"
"""

NODE = """
const http = require("http");
const server = http.createServer((request, response) => {{
    request.resume();
    request.on("end", () => {{
        console.log(`${{request.socket.remotePort}} ${{request.method}} ${{request.url}} 200`);
        const body = request.url + "\\n";
        response.writeHead(200, {{"Content-Length": Buffer.byteLength(body)}});
        response.end(request.method === "HEAD" ? undefined : body);
    }});
}});
server.keepAliveTimeout = {idle_s} * 1000;
server.listen({port}, "{address}", 1024);
"""


class RealServer:
    def __init__(self, program, namespace, address, directory, idle_s=75, port=8080, text=None):
        self.port = port
        self.directory = directory / f"{program}-{port}"
        self.directory.mkdir()
        self.directory.chmod(0o777)
        self.log_path = self.directory / "access.log"
        if not shutil.which(program):
            pytest.skip(f"there is no {program}")
        bracketed = f"[{address}]" if ":" in address else address
        config, usual, command = self.how(program)
        config.write_text((text or usual).format(directory=self.directory, idle_s=idle_s, port=port, address=address,
                                      listen=f"{bracketed}:{port}"))
        with open(self.log_path, "ab") as log, open(self.directory / "errors", "ab") as errors:
            self.process = subprocess.Popen(namespace.command(*command), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=errors)
        eventually(lambda: self.listens(namespace), f"{program} listens")

    def how(self, program):
        config = self.directory / "config"
        if program == "nginx":
            return config, NGINX, ["nginx", "-p", self.directory, "-e", self.directory / "error.log", "-c", config]
        if program == "haproxy":
            return config, HAPROXY, ["haproxy", "-f", config]
        return config, NODE, ["node", config]

    def listens(self, namespace):
        assert self.process.poll() is None, (self.directory / "errors").read_text()
        found = namespace.run("ss", "-Hltn", f"sport = :{self.port}")
        return bool(found.strip())

    def log(self):
        """Lines of what was seen."""
        return self.log_path.read_text().splitlines()

    def requests(self):
        """(connection, method, target) of each."""
        return [tuple(line.split(" ")[:3]) for line in self.log()]

    def targets(self):
        return [target for _, _, target in self.requests()]

    def served(self):
        return len(self.log())

    def close(self):
        end(self.process)
