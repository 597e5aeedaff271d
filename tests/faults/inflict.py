"""The faults that a service is put through, each on the processes that `make run` started."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psutil
import psycopg

from rme.run.places import engine_env
from tests.service import ROOT, Service

POSTGRES = "-c unix_socket_directories="
WORKER, WEB = "rme.workers", "rme.web"
FROZEN_SECONDS = 3.0
TERMINATIONS = 40
TERMINATION_SECONDS = 0.25


@dataclass(frozen=True)
class Fault:
    """Something that happens to a running service, and is over when `inflict` returns."""

    name: str
    inflict: Callable[[Service], None]
    kills_senders: bool = False
    """Windows may be in doubt afterwards: their messages may arrive twice."""


def killed(word: str) -> Callable[[Service], None]:
    """Kill all processes with a word in their command line; their supervisor starts others."""

    def inflict(service: Service) -> None:
        assert service.children(word), word
        service.kill(word)

    return inflict


def frozen(word: str) -> Callable[[Service], None]:
    """Stop processes, and all below them, for some seconds, as a machine does that hangs."""

    def inflict(service: Service) -> None:
        found = service.children(word)
        assert found, word
        found += [child for each in found for child in each.children(recursive=True)]
        for each in found:
            each.send_signal(signal.SIGSTOP)
        time.sleep(FROZEN_SECONDS)
        for each in found:
            each.send_signal(signal.SIGCONT)

    return inflict


def pool_processes(service: Service, name: str = "rme-") -> list[psutil.Process]:
    """Return the processes that run the tasks of a worker, or of all."""
    processes = []
    for process in service.children(name):
        with suppress(psutil.NoSuchProcess):
            parent = process.parent()
            if parent is not None and parent.name() == process.name():
                processes.append(process)
    return processes


def terminated(service: Service) -> None:
    """Send SIGTERM to the processes that send, again and again, as systemd does to a whole group.

    The worker replaces them.
    """
    ended = 0
    for _ in range(TERMINATIONS):
        for process in pool_processes(service, "rme-email"):
            with suppress(psutil.NoSuchProcess):
                process.terminate()
                ended += 1
        time.sleep(TERMINATION_SECONDS)
    assert ended


def out_of_memory(service: Service) -> None:
    """Let the processes that send have no more memory than they have now."""
    limited = pool_processes(service, "rme-email")
    assert limited
    for process in limited:
        with suppress(psutil.NoSuchProcess):
            size = process.memory_info().vms
            process.rlimit(psutil.RLIMIT_AS, (size, psutil.RLIM_INFINITY))
    time.sleep(FROZEN_SECONDS)
    for process in limited:  # one that had enough would end during a later fault
        with suppress(psutil.NoSuchProcess):
            process.rlimit(psutil.RLIMIT_AS, (psutil.RLIM_INFINITY, psutil.RLIM_INFINITY))


@contextmanager
def superuser(service: Service) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    options = "-c default_transaction_read_only=off"
    with psycopg.connect(service.database, options=options, autocommit=True) as connection:
        yield connection


def backends_terminated(service: Service) -> None:
    with superuser(service) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )


def read_only(service: Service) -> None:
    """Let PostgreSQL take nothing that is written, as a primary that was demoted does."""
    with superuser(service) as connection:
        connection.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        connection.execute("SELECT pg_reload_conf()")
        time.sleep(FROZEN_SECONDS)
        connection.execute("ALTER SYSTEM RESET default_transaction_read_only")
        connection.execute("SELECT pg_reload_conf()")


def two_beats(service: Service) -> None:
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "rme.celery", "beat"]
    command += ["--loglevel", "WARNING", "--pidfile", ""]
    env = {**engine_env(service.var), **service.env}
    beat = subprocess.Popen(command, cwd=ROOT, env=env)
    try:
        time.sleep(FROZEN_SECONDS + 2)  # it needs some time to come up
        assert psutil.pid_exists(beat.pid)
        assert beat.poll() is None
    finally:
        beat.terminate()
        beat.wait(20)


SCHEDULED = "SELECT message_id FROM messaging_delivery WHERE status = 'SCHEDULED' LIMIT 1"
POISON = """
UPDATE messaging_messagecontent SET body = '"poison"' WHERE id = %s RETURNING id
"""


def poisoned_delivery(service: Service) -> None:
    """Spoil what a scheduled message is made of, so that rendering it raises an odd exception."""
    with superuser(service) as connection:
        until = time.monotonic() + 20
        while True:
            scheduled = connection.execute(SCHEDULED).fetchone()
            if scheduled and connection.execute(POISON, scheduled).fetchall():
                return
            assert time.monotonic() < until
            time.sleep(0.01)


FAULTS = [
    Fault("PostgreSQL killed", killed(POSTGRES), kills_senders=True),
    Fault("backends terminated", backends_terminated, kills_senders=True),
    Fault("read-only primary", read_only, kills_senders=True),
    Fault("Valkey killed", killed("valkey-server")),
    Fault("Valkey frozen", frozen("valkey-server")),
    Fault("worker killed", killed(WORKER), kills_senders=True),
    Fault("senders terminated", terminated),
    Fault("senders out of memory", out_of_memory, kills_senders=True),
    Fault("web killed", killed(WEB)),
    Fault("two beats", two_beats),
    Fault("poisoned delivery", poisoned_delivery),
]
LONG_FAULTS = [
    *FAULTS,
    Fault("PostgreSQL frozen", frozen(POSTGRES), kills_senders=True),
    Fault("worker frozen", frozen(WORKER), kills_senders=True),
    Fault("beat killed", killed("rme-beat")),
]
