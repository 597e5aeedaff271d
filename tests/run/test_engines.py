"""The embedded engines and the process tree: data stays, and nothing is left behind."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import psycopg
import pytest

from rme.run.engines import Postgres
from rme.run.places import engine_env, postgres_data, sockets
from rme.run.supervisor import Program, Supervisor
from tests.service import ROOT

pytestmark = pytest.mark.xdist_group("service")


@pytest.fixture
def var():
    with tempfile.TemporaryDirectory(prefix="rme-test-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def connect(var):
    return psycopg.connect(f"host={sockets(var)} user=rme dbname=rme", autocommit=True)


def test_a_second_start_goes_on_with_the_same_data_even_after_a_kill(var):
    server = Postgres(var)
    server.start()
    with connect(var) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    psutil.Process(server.process.pid).kill()
    server.process.wait()
    assert (postgres_data(var) / "data" / "postmaster.pid").exists()  # stale, and no obstacle
    for child in psutil.process_iter(["cmdline"]):
        if str(var) in " ".join(child.info["cmdline"] or []):
            child.wait(10)
    again = Postgres(var)
    again.start()
    with connect(var) as connection:
        assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)
    again.stop()
    assert again.process.poll() is not None


def test_addresses_are_told_without_starting_anything(var):
    told = engine_env(var)
    assert told["DATABASE_URL"].startswith("postgres://rme@%2F")
    assert len(f"{sockets(var)}/.s.PGSQL.5432") < 100  # a socket's path has 107 bytes
    assert list(var.iterdir()) == []


def test_exec_gives_the_commands_exit_code_and_leaves_nothing(var):
    code = "import os, sys; print(os.environ['REDIS_URL'], os.environ['RME_VAR']); sys.exit(7)"
    env = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "REDIS_URL")}
    done = subprocess.run(
        [sys.executable, "-m", "rme.run", "exec", "--", sys.executable, "-c", code],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    url, folder = done.stdout.split()
    assert done.returncode == 7, done.stderr
    assert not Path(folder).exists()
    assert not Path(url.removeprefix("unix://").partition("?")[0]).exists()


def pids(word):
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if word in " ".join(process.info["cmdline"] or []):
            found.append(process.pid)
    return found


SCRIPT = """
import sys
from pathlib import Path
from rme.run.supervisor import Program, Supervisor
sleep = "import time, sys; sys.argv; time.sleep(600)"
children = [Program("one", [sys.executable, "-c", sleep, sys.argv[2]])]
sys.exit(Supervisor(Path(sys.argv[1]), children, {"PORT": "9", "PATH": "/bin"}).up())
"""


@pytest.fixture
def tree(var):
    """Run a supervisor with real engines and a stand-in for a program."""
    mark = f"mark-{var.name}"
    env = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "REDIS_URL")}
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(var), mark], cwd=ROOT, env=env)
    until = time.monotonic() + 30
    while len(pids(mark)) < 2:
        assert time.monotonic() < until
        time.sleep(0.1)
    yield process, mark, var
    process.kill()
    process.wait()


def gone(*words, seconds=15):
    until = time.monotonic() + seconds
    while any(pids(word) for word in words):
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_whichever_way_it_ends(tree, how):
    process, mark, var = tree
    process.send_signal(how)
    code = process.wait(30)
    assert code == (-9 if how is signal.SIGKILL else 0)
    assert gone(mark, str(postgres_data(var)), str(sockets(var)))


def test_a_program_that_dies_is_started_again(tree):
    process, mark, _ = tree
    child = next(pid for pid in pids(mark) if pid != process.pid)
    os.kill(child, signal.SIGKILL)
    until = time.monotonic() + 10
    while not [pid for pid in pids(mark) if pid not in (process.pid, child)]:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_what_cannot_live_is_given_up(var, capsys):
    env = {"DATABASE_URL": "x", "REDIS_URL": "x", "PORT": "9"}
    failing = Program("broken", [sys.executable, "-c", "raise SystemExit(3)"])
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        assert Supervisor(var, [failing], env).up() == 1
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert "broken keeps failing; see above." in capsys.readouterr().err
