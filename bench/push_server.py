"""Push services that take everything: nginx, HTTP/1.1 and HTTP/2 over TLS by a CA of the tests.

It answers as Apple, Google and browsers' services do when all is well, and costs the machine as
little as can be: on two cores whatever a server in Python used up would be missing to the senders.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.scene import free_port, wait_for_port
from tests.fakes.tls import ca_pem, server_pem

_CONFIGURATION = """
daemon off; master_process off; worker_processes 1;
pid {folder}/pid; error_log stderr crit;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_timeout 600; keepalive_requests 100000000;
  http2_max_concurrent_streams 1000;
  client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
  uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
  default_type application/json;
  server {{
    listen 127.0.0.1:{port} ssl http2 backlog=1000;
    ssl_certificate {folder}/server.pem; ssl_certificate_key {folder}/server.pem;
    location /3/device/ {{ add_header apns-id $http_apns_id; return 200; }}
    location /wpush/ {{ add_header location /m/$request_id; return 201; }}
    location /v1/projects/ {{ return 200 '{{"name":"projects/p/messages/$request_id"}}'; }}
    location /token {{ return 200 '{{"access_token":"access","expires_in":3599}}'; }}
  }}
}}
"""


@dataclass(frozen=True)
class PushServer:
    """Where it listens, and the file with the certificate to trust."""

    port: int
    ca: Path

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"


def program(name: str) -> str | None:
    """Find a program that Debian may keep out of a user's path."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


@contextmanager
def push_server() -> Iterator[PushServer]:
    """Serve while the context is open. Raises FileNotFoundError without nginx."""
    nginx = program("nginx")
    if nginx is None:
        raise FileNotFoundError("no nginx here (Debian: nginx-light)")
    with tempfile.TemporaryDirectory(prefix="rme-bench-") as name:
        folder, port = Path(name), free_port()
        (folder / "server.pem").write_bytes(server_pem())
        (folder / "ca.pem").write_text(ca_pem())
        (folder / "nginx.conf").write_text(_CONFIGURATION.format(folder=folder, port=port))
        process = subprocess.Popen([nginx, "-p", name, "-c", f"{name}/nginx.conf"])
        try:
            wait_for_port(port)
            yield PushServer(port, folder / "ca.pem")
        finally:
            process.terminate()
            process.wait(20)
