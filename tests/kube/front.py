# SPDX-License-Identifier: GPL-2.0
"""nginx before the front, with a port for each user: it says who asks, as an authenticating proxy does."""
import socket
import subprocess

from lib.process import end, eventually

SERVER = """
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://front;
      proxy_http_version 1.1;
      proxy_set_header Host $host;
      proxy_set_header Connection $hop;
      proxy_set_header Upgrade $http_upgrade;
      proxy_buffering off;
      proxy_request_buffering off;
      proxy_next_upstream off;
      proxy_read_timeout 1h;
{identity}
    }}
  }}"""

CONFIGURATION = """
daemon off;
worker_processes 1;
pid {directory}/nginx.pid;
error_log {directory}/nginx.log;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_max_body_size 16m;
  merge_slashes off;
  client_body_temp_path {directory}/nginx-body;
  proxy_temp_path {directory}/nginx-proxy;
  fastcgi_temp_path {directory}/nginx-fastcgi;
  uwsgi_temp_path {directory}/nginx-uwsgi;
  scgi_temp_path {directory}/nginx-scgi;
  map $http_upgrade $hop {{ default upgrade; '' ''; }}
  upstream front {{ server {front}; keepalive 8; }}
{servers}
}}
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def answers(port):
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def identity(user, groups):
    lines = [f'      proxy_set_header X-Remote-User "{user}";'] if user else []
    # nginx has one header of a name: a list of groups would have to be one group with commas in it
    lines += [f'      proxy_set_header X-Remote-Group "{group}";' for group in groups]
    return "\n".join(lines)


class Identities:
    """ports[user]; None: nobody is named."""

    USERS = {
        "admin": ["system:masters"],
        "limited": ["system:masters"],
        "nobody-special": [],
        "system:kube-controller-manager": ["system:masters"],
        "system:serviceaccount:default:builder": ["system:serviceaccounts"],
        None: [],
    }

    def __init__(self, directory, front):
        self.ports = {user: free_port() for user in self.USERS}
        servers = "".join(SERVER.format(port=self.ports[user], identity=identity(user, groups))
                          for user, groups in self.USERS.items())
        self.path = directory / "nginx.conf"
        self.path.write_text(CONFIGURATION.format(directory=directory, front=front, servers=servers))

    def __enter__(self):
        self.process = subprocess.Popen(["nginx", "-c", str(self.path), "-p", str(self.path.parent)],
                                        stdin=subprocess.DEVNULL)
        eventually(lambda: all(answers(port) for port in self.ports.values()), "nginx listens")
        return self

    def __exit__(self, *_):
        end(self.process)
