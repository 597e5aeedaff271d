"""Debian's PgBouncer in transaction mode, on a socket of the test's own.

Debian 12 has 1.18, which loses prepared statements; 1.22 and later keep them
(https://www.pgbouncer.org/config.html#max_prepared_statements). `make pooler-preparing` unpacks the
one of Debian 13, which is started by the loader and with the libraries that it was built for.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

import psycopg

from rme.run.places import UNPRIVILEGED
from rme.run.process import spawn, stop
from tests.service import free_port

SERVER = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
REASON = "PgBouncer is not installed: make pooler"
_DEBIAN_13 = Path(sys.prefix) / "debian-13"
_LIBRARIES = _DEBIAN_13 / "usr" / "lib" / "x86_64-linux-gnu"
_LOADER = [str(_LIBRARIES / "ld-linux-x86-64.so.2"), "--library-path", str(_LIBRARIES)]
PREPARING = _DEBIAN_13 / "usr" / "sbin" / "pgbouncer"
"""A PgBouncer that keeps statements prepared, where it is there."""
PREPARING_REASON = "PgBouncer of Debian 13 is not unpacked: make pooler-preparing"
START_SECONDS = 30.0

# Only the settings by which a transaction-mode pool differs from the defaults, as in
# docs/connections.md, and a pool so small that clients have to share it.
_CONFIGURATION = """
[databases]
{name} = host={host} port={server_port} dbname={name} user=rme pool_size={size}
  connect_query='SET jit = off; SET client_connection_check_interval = 2000'
session_{name} = host={host} port={server_port} dbname={name} user=rme pool_mode=session

[pgbouncer]
listen_addr =
listen_port = {port}
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
max_client_conn = 500
ignore_startup_parameters = {ignored}
server_login_retry = 1
{more}
logfile = {folder}/log
pidfile = {folder}/pid
"""


class PgBouncer:
    """A pooler before the database `name` of a server on a socket."""

    def __init__(
        self,
        folder: Path,
        host: str,
        name: str,
        *,
        server_port: str = "5432",
        size: int = 3,
        prepares: bool = False,
    ) -> None:
        """With `prepares` it keeps statements prepared, which needs `PREPARING`."""
        self.folder, self.name, self.port = folder, name, free_port()
        self.prepares = prepares
        self.process: subprocess.Popen[bytes] | None = None
        self._values = {"host": host, "name": name, "server_port": server_port, "size": size}

    @property
    def url(self) -> str:
        """The address of the pool in transaction mode."""
        return f"postgres://rme@{quote(str(self.folder), safe='')}:{self.port}/{self.name}"

    def start(self, *, ignored: str = "") -> None:
        """Start it; `ignored` are the start-up parameters that it takes and ignores."""
        command = [*_LOADER, str(PREPARING)] if self.prepares else [str(SERVER)]
        self.folder.mkdir(exist_ok=True)
        user = UNPRIVILEGED if os.getuid() == 0 else None
        if user is not None:
            os.chown(self.folder, user, user)
        more = "max_prepared_statements = 300" if self.prepares else ""
        values = {**self._values, "folder": self.folder, "port": self.port, "more": more}
        text = _CONFIGURATION.replace("\n  connect_query", " connect_query").format(
            **values, ignored=ignored
        )
        configuration = self.folder / "pgbouncer.ini"
        configuration.write_text(text)
        configuration.chmod(0o644)
        self.process = spawn(
            [*command, "--quiet", str(configuration)],
            env={"PATH": os.environ["PATH"]},
            user=user,
            death=signal.SIGTERM,
        )
        until = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=3).close()
            except psycopg.OperationalError:
                assert time.monotonic() < until, (self.folder / "log").read_text()
                time.sleep(0.05)
            else:
                return

    def stop(self) -> None:
        """End it at once, with all connections: by SIGTERM 1.23 and later wait for clients."""
        if self.process:
            stop(self.process, signal.SIGQUIT if self.prepares else signal.SIGTERM)
