# SPDX-License-Identifier: GPL-2.0
"""The configuration of an nginx that keeps all its files in {directory}."""

TEMPLATE = """
daemon off;
worker_processes 1;
pid {directory}/nginx.pid;
error_log {directory}/error.log;
events {{ worker_connections 2048; }}
http {{
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    HTTP
}}
"""


def configuration(http):
    """To be formatted with the directory, and whatever `http` has."""
    return TEMPLATE.replace("HTTP", http.strip())
