"""The combinations of servers that the service is put through faults on, each run by the test."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg

from rme.run.places import UNPRIVILEGED
from rme.run.process import spawn, stop
from tests.fakes.pgbouncer import PREPARING, PgBouncer
from tests.fakes.pgbouncer import SERVER as PGBOUNCER
from tests.fakes.sentinel import Watched
from tests.faults.accounting import Sink, Traffic
from tests.faults.inflict import FAULTS, FROZEN_SECONDS, Fault
from tests.faults.rabbitmq import SERVER as RABBITMQ
from tests.faults.rabbitmq import RabbitMQ
from tests.service import Service, data_folder, running

BINARIES = Path("/usr/lib/postgresql/15/bin")
QUICK = {"LEASE_SECONDS": "6", "UNKNOWN_SECONDS": "2"}
POOL_SIZE = 12
_SETTINGS = ("listen_addresses=", "timezone=UTC", "fsync=off", "max_connections=100")
START_SECONDS = 60.0


@dataclass(frozen=True)
class Scene:
    """A running service with mail server and traffic, and the faults of its servers."""

    service: Service
    sink: Sink
    traffic: Traffic
    faults: tuple[Fault, ...]


@dataclass(frozen=True)
class Combination:
    """Servers that can be had where `missing` is empty."""

    name: str
    missing: tuple[str, ...]
    run: Callable[[], AbstractContextManager[Scene]]


class Debian15:
    """Debian's PostgreSQL 15 on a socket, with a database that is empty at first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.user = UNPRIVILEGED if os.getuid() == 0 else None
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def where(self) -> str:
        return f"host={self.folder} user=rme dbname=rme"

    @property
    def url(self) -> str:
        return f"postgres://rme@{quote(str(self.folder), safe='')}/rme"

    def create(self) -> None:
        """Create the data folder, start the server, and create the database."""
        self.folder.mkdir()
        if self.user is not None:
            os.chown(self.folder, self.user, self.user)
        initdb = [str(BINARIES / "initdb"), "-D", str(self.folder / "data"), "-U", "rme"]
        subprocess.run(
            [*initdb, "-A", "trust", "--locale=C.UTF-8", "--encoding=UTF8", "--no-sync"],
            user=self.user,
            group=self.user,
            extra_groups=None if self.user is None else [],
            cwd="/",
            check=True,
            capture_output=True,
        )
        self.start("postgres")
        with psycopg.connect(self.where.replace("dbname=rme", "dbname=postgres")) as connection:
            connection.autocommit = True
            connection.execute("CREATE DATABASE rme")

    def start(self, database: str = "rme") -> None:
        """Start the server, and wait until it answers."""
        settings = [*_SETTINGS, f"unix_socket_directories={self.folder}"]
        options = [part for each in settings for part in ("-c", each)]
        until = time.monotonic() + START_SECONDS
        self.process = None
        while True:
            if self.process is None or self.process.poll() is not None:
                self.process = spawn(
                    [str(BINARIES / "postgres"), "-D", str(self.folder / "data"), *options],
                    env={"PATH": os.environ["PATH"]},
                    log=self.folder.with_name("postgres15.log"),
                    user=self.user,
                    death=signal.SIGINT,
                )
            try:
                psycopg.connect(self.where.replace("dbname=rme", f"dbname={database}")).close()
            except psycopg.OperationalError:
                assert time.monotonic() < until, "PostgreSQL 15 does not start"
                time.sleep(0.1)
            else:
                return

    def kill(self) -> None:
        """Kill it and all its processes, and start it anew."""
        assert self.process is not None
        top = psutil.Process(self.process.pid)
        for each in [top, *top.children(recursive=True)]:
            each.kill()
        self.process.wait()
        self.start()

    def stop(self) -> None:
        if self.process:
            stop(self.process, signal.SIGINT)


@contextmanager
def _serving(
    stack: ExitStack, var: Path, faults: tuple[Fault, ...], database: str, **env: str
) -> Iterator[Scene]:
    sink = Sink(var)
    stack.callback(sink.stop)
    url = f"smtp+plain://127.0.0.1:{sink.port}"
    with running(var, SMTP_URL=url, **QUICK, **env) as service:
        service.database = database or service.database
        yield Scene(service, sink, Traffic(service, sink), faults)


@contextmanager
def embedded() -> Iterator[Scene]:
    """Run the service on the engines that it brings along."""
    with ExitStack() as stack:
        var = stack.enter_context(data_folder())
        yield stack.enter_context(_serving(stack, var, tuple(FAULTS), ""))


@contextmanager
def pooled() -> Iterator[Scene]:
    """Run it on PostgreSQL 15 behind PgBouncer, with RabbitMQ's quorum queues."""
    with ExitStack() as stack:
        var = stack.enter_context(data_folder())
        rabbit = RabbitMQ(var / "rabbitmq")
        stack.callback(rabbit.stop)
        rabbit.start()
        env = {"CELERY_BROKER_URL": rabbit.url, "CELERY_QUEUE_TYPE": "quorum"}
        stopped = Fault("RabbitMQ stopped", lambda _: _again(rabbit))
        yield _behind_a_pooler(stack, var, (stopped,), **env)


@contextmanager
def prepared() -> Iterator[Scene]:
    """Run it on PostgreSQL 15 behind a PgBouncer that keeps statements prepared."""
    with ExitStack() as stack:
        var = stack.enter_context(data_folder())
        yield _behind_a_pooler(stack, var, (), DATABASE_PREPARED_STATEMENTS="1")


def _behind_a_pooler(stack: ExitStack, var: Path, more: tuple[Fault, ...], **env: str) -> Scene:
    postgres = Debian15(var / "pg15")
    stack.callback(postgres.stop)
    postgres.create()
    prepares = "DATABASE_PREPARED_STATEMENTS" in env
    pooler = PgBouncer(
        var / "pgbouncer", str(postgres.folder), "rme", size=POOL_SIZE, prepares=prepares
    )
    stack.callback(pooler.stop)
    pooler.start()
    env |= {
        "DATABASE_URL": pooler.url,
        "DATABASE_POOLER": "transaction",
        "DATABASE_DIRECT_URL": postgres.url,
    }
    own = (
        Fault("PostgreSQL killed", lambda _: postgres.kill(), kills_senders=True),
        Fault("PgBouncer killed", lambda _: _again(pooler), kills_senders=True),
        Fault("PgBouncer frozen", lambda _: _freeze(pooler.process), kills_senders=True),
    )
    others = (each for each in FAULTS if each.name != "PostgreSQL killed")
    faults = (*own, *more, *others)
    return stack.enter_context(_serving(stack, var, faults, postgres.where, **env))


@contextmanager
def watched() -> Iterator[Scene]:
    """Run it on Valkey with a replica and three Sentinels, which are Celery's broker too."""
    with ExitStack() as stack:
        var = stack.enter_context(data_folder())
        servers = Watched(var / "sentinel", sentinels=3)
        stack.callback(servers.stop)
        servers.start()
        own = (
            Fault("primary killed", lambda _: _fail_over(servers, servers.kill)),
            Fault("primary frozen", lambda _: _fail_over(servers, servers.freeze)),
        )
        faults = (*own, *(each for each in FAULTS if not each.name.startswith("Valkey")))
        yield stack.enter_context(_serving(stack, var, faults, "", REDIS_URL=servers.url))


def _again(server: PgBouncer | RabbitMQ) -> None:
    server.stop()
    time.sleep(FROZEN_SECONDS)
    server.start()


def _freeze(process: "subprocess.Popen[bytes] | None") -> None:
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    time.sleep(FROZEN_SECONDS)
    process.send_signal(signal.SIGCONT)


def _fail_over(servers: Watched, end: Callable[[int], None]) -> None:
    """Take the primary away until its replica is the primary, and bring it back as a replica."""
    first = servers.primary()
    end(first)
    servers.wait_for_another(first)
    servers.bring_back(first)


def _missing(**found: object) -> tuple[str, ...]:
    """Return the targets of make that install what was not found."""
    return tuple(f"make {name.replace('_', '-')}" for name, there in found.items() if not there)


_POSTGRES15 = (BINARIES / "postgres").exists()

COMBINATIONS = (
    Combination("embedded engines", (), embedded),
    Combination(
        "PostgreSQL 15, PgBouncer 1.18, RabbitMQ with quorum queues",
        _missing(postgres15=_POSTGRES15, pooler=PGBOUNCER, broker=RABBITMQ.exists()),
        pooled,
    ),
    Combination(
        "PostgreSQL 15, PgBouncer 1.24 with prepared statements",
        _missing(postgres15=_POSTGRES15, pooler_preparing=PREPARING.exists()),
        prepared,
    ),
    Combination("Valkey with a replica and three Sentinels", (), watched),
)
