"""The whole service as `make run` starts it, in a data folder of its own."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
import requests

from rme.run.engines import CrashLog, Postgres
from rme.run.places import engine_env, sockets
from tests import databases, pruning
from tests.ports import free_port as free_port

ROOT = Path(__file__).resolve().parent.parent
MIGRATED = "RME_TESTS_MIGRATED"
"""The variable that names a folder of this run of the tests: see `data_folder`."""


def wait_for(condition: Callable[[], Any], seconds: float = 30.0) -> Any:
    """Return what a condition returns once that is true. Fail when the time is over."""
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.05)
    return found


class CrashWatch:
    """Crashes of the PostgreSQL servers in all data folders that are in use."""

    def __init__(self) -> None:
        self._logs: dict[Path, dict[Path, CrashLog]] = {}

    @contextmanager
    def watching(self, folder: Path) -> Iterator[None]:
        """Watch a new folder while the block runs, and fail if anything crashed by its end."""
        self._logs[folder] = {}
        try:
            yield
            found = self.take(folder)
        finally:
            del self._logs[folder]
        assert not found, "\n".join(found)

    def take(self, *folders: Path) -> list[str]:
        """Return the crashes since the last call: in some folders, or in all.

        A test that has a server crash takes what it caused.
        """
        found = []
        for folder in folders or self._logs:
            logs = self._logs[folder]
            for pattern in ("log/postgres.log", "*/log/postgres.log"):
                for path in folder.glob(pattern):
                    found += logs.setdefault(path, CrashLog(path)).take()
        return found


CRASHES = CrashWatch()
"""What `tests/conftest.py` looks at after each test."""


class Service:
    """A running service: its demo data, and ways to call it and to break it."""

    def __init__(self, var: Path, **env: str) -> None:
        self.var = var
        self.port = free_port()
        self.database = f"host={sockets(var)} user=rme dbname=rme"
        """Where its PostgreSQL is; by default the one that it starts."""
        self.env = {**own_engines(), "RME_VAR": str(var), "PORT": str(self.port), **env}
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        self.log = (self.var / "service.log").open("w")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rme.run", "up"],
            cwd=ROOT,
            env=self.env,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            text=True,
        )
        until = time.monotonic() + 120  # a busy machine
        while "rme is up." not in self.log_text():
            assert self.process.poll() is None, self.log_text()
            assert time.monotonic() < until, self.log_text()
            time.sleep(0.1)

    def log_text(self) -> str:
        return (self.var / "service.log").read_text()

    def demo(self) -> dict[str, Any]:
        """Return the demo's secrets from the file that holds them, and its addresses."""
        base = f"http://127.0.0.1:{self.port}"
        found: dict[str, Any] = json.loads((self.var / "demo.json").read_text())
        return {
            "base_url": f"{base}/rme/v1",
            "auth_url": base,
            "bot_base_url": f"{base}/bot",
            "admin_url": f"{base}/admin/",
            **found,
        }

    def demo_json(self) -> dict[str, Any]:
        """Return what `make demo-json` prints."""
        command = [sys.executable, "-m", "rme.run", "demo-json"]
        made = subprocess.run(
            command, cwd=ROOT, env=self.env, capture_output=True, text=True, check=True
        )
        found: dict[str, Any] = json.loads(made.stdout)
        return found

    def stop(self) -> int:
        assert self.process is not None
        tree = [self.process, *psutil.Process(self.process.pid).children(recursive=True)]
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(40)
        _, left = psutil.wait_procs([p for p in tree[1:] if isinstance(p, psutil.Process)], 5)
        assert not left, left
        return code

    def children(self, word: str) -> list[psutil.Process]:
        """Find processes of the tree by a word of their command line, or by the name `ps` shows."""
        assert self.process is not None
        found = []
        for child in psutil.Process(self.process.pid).children(recursive=True):
            try:
                if word in " ".join([child.name(), *child.cmdline()]):
                    found.append(child)
            except psutil.Error:
                continue  # it ended while we looked
        return found

    def kill(self, word: str) -> None:
        """Kill all processes with a word in their command line or name, as the kernel would."""
        for child in self.children(word):
            try:
                child.kill()
            except psutil.NoSuchProcess:
                continue  # its parent took it along

    def token(self, demo: dict[str, Any]) -> str:
        """Return a token, also where an earlier test has just killed the web."""
        form = {
            "grant_type": "client_credentials",
            "client_id": demo["client_id"],
            "client_secret": demo["client_secret"],
        }
        url = f"{demo['auth_url']}/services/oauth2/token"

        def asked() -> str | None:
            with suppress(requests.ConnectionError):
                return str(requests.post(url, form, timeout=10).json()["access_token"])
            return None

        return str(wait_for(asked))

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.database) as connection:
            return connection.execute(statement).fetchall()  # type: ignore[arg-type]


def note(demo: dict[str, Any], number: int, **more: object) -> dict[str, Any]:
    """Return a message to one of the demo's people, by number, with the demo's template."""
    people = demo["contact_ids"]
    return {
        "channel": "EMAIL",
        "category": "TRANSACTIONAL",
        "to": [{"contactId": people[number % len(people)]}],
        "template": {"name": "note", "language": "en_US"},
        "context": {"variables": {"note": "n"}},
        **more,
    }


@contextmanager
def data_folder() -> Iterator[Path]:
    """Return a new data folder with a migrated database, so that no service migrates its own."""
    with tempfile.TemporaryDirectory(prefix="rme-test-", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        subprocess.run(["cp", "-a", _migrated() / "postgres", folder], check=True)
        with (folder / "postgres" / "data" / "postgresql.auto.conf").open("a") as settings:
            settings.write(pruning.LOG_STATEMENTS)
        with CRASHES.watching(folder):
            yield folder
        for log in folder.rglob("postgres.log"):
            _check_statements(log)


def _check_statements(log: Path) -> None:
    """Check what a server executed as `tests/conftest.py` does for the process of the tests."""
    if statements := pruning.read_log(log):
        var = log.parent.parent
        engine = Postgres(var, ephemeral=True)
        engine.start()
        try:
            refused = pruning.refused(statements, engine_env(var)["DATABASE_URL"])
        finally:
            engine.stop()
        assert not refused, "\n\n".join(each.text for each in refused)


def _migrated() -> Path:
    """Return the data folder of a service that has migrated and stopped; one for all workers."""
    folder = Path(os.environ[MIGRATED])
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "postgres").exists():
            (_copy if databases.template() else _migrate)(folder)
    return folder


def _migrate(folder: Path) -> None:
    command = [sys.executable, "-m", "rme.run", "--var", str(folder), "exec", "--"]
    command += [sys.executable, str(ROOT / "manage.py"), "migrate", "--verbosity", "0"]
    subprocess.run(command, cwd=ROOT, env=own_engines(), check=True)


def _copy(folder: Path) -> None:
    """Copy the database that the tests have migrated: a quarter of the CPU time of migrating."""
    engine = Postgres(folder, ephemeral=True)
    engine.start()
    try:
        with databases.copy_of(databases.template()) as source:
            dump = [engine.install / "bin/pg_dump", source]
            load = [engine.install / "bin/psql", "-qX1", "-v", "ON_ERROR_STOP=1", "-o", os.devnull]
            load += ["-h", engine.socket, "-U", "rme", "rme"]
            with subprocess.Popen(dump, env=engine.env(), stdout=subprocess.PIPE) as dumped:
                subprocess.run(load, env=engine.env(), stdin=dumped.stdout, check=True)
        assert dumped.returncode == 0
    finally:
        engine.stop()


def own_engines() -> dict[str, str]:
    """Return the environment without the engines of the tests."""
    return {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "REDIS_URL")}


@contextmanager
def running(var: Path, **env: str) -> Iterator[Service]:
    """Run a service while the block runs; nothing of it is left afterwards."""
    var.chmod(0o755)
    service = Service(var, **env)
    try:
        service.start()
        yield service
    finally:
        if service.process is not None and service.process.poll() is None:
            service.process.send_signal(signal.SIGTERM)
            service.process.wait(40)
