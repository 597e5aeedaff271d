"""Claims and the sweep on PostgreSQL 15, the oldest that the service is run on."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from rme.run.places import UNPRIVILEGED
from rme.run.process import spawn, stop
from tests.service import ROOT

BINARIES = Path("/usr/lib/postgresql/15/bin")

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        not (BINARIES / "postgres").exists(),
        reason="PostgreSQL 15 is not installed: make postgres15",
    ),
]

TESTS = ["test_claims.py", "claim_plans.py", "test_fairness.py", "test_sweeper.py"]
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "timezone": "UTC",
}


@pytest.fixture
def server() -> Iterator[str]:
    """Start a server of our own on a socket, and give the address of its database."""
    user = UNPRIVILEGED if os.getuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="rme-pg15-", dir="/tmp"))  # a socket's path is short
    try:
        if user is not None:
            os.chown(folder, user, user)
        initdb = [str(BINARIES / "initdb"), "-D", str(folder / "data"), "-U", "rme", "-A", "trust"]
        subprocess.run(
            [*initdb, "--locale=C.UTF-8", "--encoding=UTF8", "--no-sync"],
            user=user,
            group=user,
            extra_groups=None if user is None else [],
            cwd="/",
            check=True,
            capture_output=True,
        )
        settings = SETTINGS | {"unix_socket_directories": str(folder)}
        options = [part for item in settings.items() for part in ("-c", "=".join(item))]
        process = spawn(
            [str(BINARIES / "postgres"), "-D", str(folder / "data"), *options],
            env={"PATH": os.environ["PATH"]},
            log=folder / "log",
            user=user,
            death=signal.SIGINT,
        )
        try:
            _create_database(folder)
            yield f"postgres://rme@{quote(str(folder), safe='')}/rme"
        finally:
            stop(process, signal.SIGINT)
    finally:
        shutil.rmtree(folder)


def _create_database(folder: Path) -> None:
    until = time.monotonic() + 30
    while True:
        try:
            where = f"host={folder} user=rme dbname=postgres"
            with psycopg.connect(where, autocommit=True) as connection:
                connection.execute("CREATE DATABASE rme")
                return
        except psycopg.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def test_claims_and_the_sweep_on_postgresql_15(server):
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-k", "not next"]
    tests = [f"tests/messaging/delivery/{name}" for name in TESTS]
    done = subprocess.run(
        [*command, *tests],
        env=os.environ | {"DATABASE_URL": server},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert " skipped" not in done.stdout
