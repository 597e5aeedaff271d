"""PostgreSQL servers of a drill: on loopback, from the embedded engine's binaries."""

import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg

from rme.run.engines import Postgres, own_folder
from rme.run.places import UNPRIVILEGED
from tests.service import free_port

STANDBY = "standby"
"""The name that a standby connects by, and synchronous_standby_names has."""
WAIT_SECONDS = 60.0


class Server(Postgres):
    """A PostgreSQL server that listens on a TCP port too, and may be a primary or a standby."""

    def __init__(self, folder: Path, **settings: str) -> None:
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
        super().__init__(folder)
        self.port = free_port()
        self.more = settings

    def settings(self) -> dict[str, str]:
        return {
            **super().settings(),
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "wal_level": "replica",
            "hot_standby": "on",
            **self.more,
        }

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def conninfo(self, database: str = "rme", **more: str) -> str:
        parts = {"host": "127.0.0.1", "port": str(self.port), "user": "rme", "dbname": database}
        return " ".join(f"{name}={value}" for name, value in (parts | more).items())

    def sql(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Execute a statement by itself, and return its rows."""
        with psycopg.connect(self.conninfo(), autocommit=True, connect_timeout=5) as connection:
            cursor = connection.execute(statement, parameters or None)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def run(self, program: str, *arguments: str) -> None:
        """Run a program of PostgreSQL as the servers' user. Raises RuntimeError if it fails."""
        user = UNPRIVILEGED if self.root else None
        done = subprocess.run(
            [str(self._binaries() / "bin" / program), *arguments],
            env=self.programs_env(),
            user=user,
            group=user,
            extra_groups=[] if self.root else None,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stderr.strip()}")

    def programs_env(self) -> dict[str, str]:
        self.install = self._binaries()
        return self.env()

    def follow(self, primary: "Server") -> None:
        """Become a standby of a server: a base backup, and its WAL from then on."""
        own_folder(self.data.parent)
        source = primary.conninfo("postgres", application_name=STANDBY)
        options = ["-D", str(self.data), "-d", source, "-c", "fast", "-X", "stream", "-R"]
        self.run("pg_basebackup", *options)
        self.start()

    def own(self, folder: Path) -> None:
        """Make a folder of the servers' user."""
        own_folder(folder)

    def back_up(self, folder: Path) -> None:
        """Make a base backup in a folder of the servers' user."""
        source = self.conninfo("postgres")
        self.run("pg_basebackup", "-D", str(folder), "-d", source, "-c", "fast", "-X", "none")

    def restore(self, backup: Path, archive: Path, moment: str | None) -> None:
        """Start from a base backup and a WAL archive, up to a moment, or to the archive's end."""
        own_folder(self.data.parent)
        subprocess.run(["cp", "-a", backup, self.data], check=True)
        lines = [f"restore_command = 'cp {archive}/%f %p'"]
        if moment:
            lines += [f"recovery_target_time = '{moment}'", "recovery_target_action = 'promote'"]
        with (self.data / "postgresql.auto.conf").open("a") as settings:
            settings.write("\n".join(lines) + "\n")
        (self.data / "recovery.signal").touch()
        self.start()
        wait_until(self._writable, "the restored server was not promoted")

    def keep_wal(self) -> None:
        """Keep WAL for pg_rewind, which recovers a killed server by the settings in its files."""
        self.sql("ALTER SYSTEM SET wal_keep_size = '1GB'")
        self.sql("SELECT pg_reload_conf()")

    def rejoin(self, primary: "Server") -> None:
        """Become a standby of the server that took this one's place while it was away."""
        source = primary.conninfo("postgres", application_name=STANDBY)
        self.run("pg_rewind", "-D", str(self.data), f"--source-server={source}", "-R")
        self.start()

    def require_standby(self, level: str) -> None:
        """Have commits wait for the standby, at a level of synchronous_commit."""
        self.sql(f"ALTER SYSTEM SET synchronous_commit = '{level}'")
        self.sql(f"ALTER SYSTEM SET synchronous_standby_names = '{STANDBY}'")
        self.sql("SELECT pg_reload_conf()")
        state = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
        wait_until(lambda: self.sql(state), "no standby is synchronous")

    def promote(self) -> None:
        """Make a standby the primary; return once it accepts writes."""
        self.sql("SELECT pg_promote(true, 60)")
        wait_until(self._writable, "the standby was not promoted")

    def _writable(self) -> bool:
        return self.sql("SELECT NOT pg_is_in_recovery()") == [(True,)]

    def processes(self, word: str = "") -> list[psutil.Process]:
        """Return the processes of this server whose title has a word."""
        assert self.process is not None
        top = psutil.Process(self.process.pid)
        found = []
        for each in [top, *top.children()]:
            with suppress(psutil.NoSuchProcess):  # a backend that has ended meanwhile
                if word in " ".join(each.cmdline()):
                    found.append(each)
        return found

    def freeze_wal_sender(self) -> None:
        """Stop the transport of WAL to the standby, as a network does that is cut."""
        for each in self.processes("walsender"):
            each.send_signal(signal.SIGSTOP)

    def freeze(self) -> None:
        """Stop all processes, as a machine does that hangs."""
        for each in self.processes():
            with suppress(psutil.NoSuchProcess):
                each.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let processes that were stopped go on."""
        for each in self.processes():
            with suppress(psutil.NoSuchProcess):
                each.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill all processes at once, as a machine does that loses its power."""
        for each in self.processes():
            with suppress(psutil.NoSuchProcess):
                each.kill()
        assert self.process is not None
        self.process.wait()


def wait_until(condition: Callable[[], Any], failure: str, seconds: float = WAIT_SECONDS) -> Any:
    """Return what a condition gives once that is true. Raises TimeoutError."""
    until = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > until:
            raise TimeoutError(failure)
        time.sleep(0.05)
    return found
