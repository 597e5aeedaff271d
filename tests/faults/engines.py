"""A running service on a PostgreSQL and a Valkey of the test's own, and ways to break them."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
import requests

from rme.run.engines import Postgres, Valkey
from rme.run.places import engine_env
from tests.service import Service, running

MEND_SECONDS = 10
"""Every process works again so soon after what it needs is back."""
BUSY_MACHINE = 3
"""Bounds are so many times as wide where a test shares its processors with others."""


def eventually(check: Callable[[], Any], seconds: float) -> Any:
    """Return what a check gives once that is true. Fail after some seconds."""
    until = time.monotonic() + seconds * BUSY_MACHINE
    while not (found := check()):
        assert time.monotonic() < until, f"not within {seconds * BUSY_MACHINE} s"
        time.sleep(0.1)
    return found


def tree(process: Any) -> list[psutil.Process]:
    """Return a process and all below it."""
    top = psutil.Process(process.pid)
    return [top, *top.children(recursive=True)]


@contextmanager
def frozen(*processes: psutil.Process) -> Iterator[None]:
    """Stop processes while the block runs, as a machine does that hangs."""
    for each in processes:
        each.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for each in processes:
            with suppress(psutil.NoSuchProcess):  # whose client went away has ended meanwhile
                each.send_signal(signal.SIGCONT)


class Broken:
    """A service and its engines."""

    def __init__(self, service: Service, postgres: Postgres, valkey: Valkey) -> None:
        self.service, self.postgres, self.valkey = service, postgres, valkey
        self.demo = service.demo()
        token = service.token(self.demo)
        self.session = requests.Session()
        self.session.headers["Authorization"] = f"Bearer {token}"
        self.sent: list[str] = []
        """The messages that were accepted."""

    def valkey_process(self) -> psutil.Process:
        assert self.valkey.process is not None
        return psutil.Process(self.valkey.process.pid)

    def call(self, method: str, path: str, **given: Any) -> requests.Response:
        url = path if path.startswith("http") else f"{self.demo['base_url']}{path}"
        return self.session.request(method, url, timeout=60, allow_redirects=False, **given)

    def root(self, path: str) -> str:
        return f"http://127.0.0.1:{self.service.port}{path}"

    def send(self, **more: Any) -> requests.Response:
        answer = self.call(
            "POST",
            "/messages",
            json={
                "channel": "EMAIL",
                "category": "TRANSACTIONAL",
                "template": {"name": "note", "language": "en_US"},
                "context": {"variables": {"note": "n"}},
                "to": [{"contactId": self.demo["contact_ids"][0]}],
                **more,
            },
        )
        if answer.status_code == 202:
            self.sent.append(answer.json()["messageId"])
        return answer

    def health(self) -> dict[str, Any]:
        found: dict[str, Any] = self.call("GET", "/health").json()
        return found

    def waiting(self) -> list[tuple[Any, ...]]:
        """Return the deliveries that have not left, by where they stand."""
        return self.sql(
            "SELECT status, reason, detail, count(*) FROM messaging_delivery "
            "WHERE status NOT IN ('SENT', 'DELIVERED') GROUP BY 1, 2, 3"
        )

    def all_left(self, seconds: float = MEND_SECONDS) -> None:
        """Wait until every message that was accepted has left."""
        until = time.monotonic() + seconds * BUSY_MACHINE
        while left := self.waiting():
            assert time.monotonic() < until, left
            time.sleep(0.1)

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        options = "-c default_transaction_read_only=off"
        where = f"host={self.postgres.socket} user=rme dbname=rme"
        with psycopg.connect(where, options=options, autocommit=True) as connection:
            cursor = connection.execute(statement)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def failures(self) -> list[str]:
        """Return the lines of the log that tell of a failed task or request."""
        marks = ("task.failed", "unprompted.failed", "request.failed", "oauth.failed", "status=500")
        return [
            line for line in self.service.log_text().splitlines() if any(m in line for m in marks)
        ]


@contextmanager
def on_own_engines(var: Path, **env: str) -> Iterator[Broken]:
    """Run a service on engines of the test's own, which no supervisor starts again."""
    var.chmod(0o755)
    engines = var / "engines"
    engines.mkdir()
    engines.chmod(0o755)
    (var / "postgres").rename(engines / "postgres")
    postgres, valkey = Postgres(engines, ephemeral=True), Valkey(engines)
    postgres.start()
    valkey.start()
    try:
        where = {**engine_env(engines), "PYTHONDONTWRITEBYTECODE": "", **env}
        with running(var, **where) as service:
            yield Broken(service, postgres, valkey)
    finally:
        for each in tree(postgres.process) if postgres.process.poll() is None else []:
            each.send_signal(signal.SIGCONT)
        valkey.stop()
        postgres.stop()
