"""The embedded engines: data stays, and nothing is left behind."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest

from rme.run.engines import Postgres
from rme.run.places import UNPRIVILEGED, engine_env, postgres_data, sockets
from rme.run.supervisor import lock
from tests.service import CRASHES, ROOT, data_folder, wait_for

pytestmark = pytest.mark.xdist_group("engines")


@pytest.fixture
def var():
    with tempfile.TemporaryDirectory(prefix="rme-test-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def connect(var):
    return psycopg.connect(f"host={sockets(var)} user=rme dbname=rme", autocommit=True)


def test_second_start_keeps_the_data_even_after_a_kill(var):
    server = Postgres(var)
    server.start()
    with connect(var) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    psutil.Process(server.process.pid).kill()
    server.process.wait()
    assert (postgres_data(var) / "data" / "postmaster.pid").exists()  # stale, and no obstacle
    again = Postgres(var)  # at once, while the processes of the first are still there
    again.start()
    with connect(var) as connection:
        assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)
    again.stop()
    assert again.process.poll() is not None
    assert not sockets(var).exists()


def test_a_lock_file_with_the_number_of_another_program_is_no_obstacle(var):
    server = Postgres(var)
    server.start()
    pid_file = postgres_data(var) / "data" / "postmaster.pid"
    said = pid_file.read_text().split("\n", 1)[1]
    server.stop()
    other = subprocess.Popen(["sleep", "60"], user=UNPRIVILEGED if server.root else None)
    pid_file.write_text(f"{other.pid}\n{said}")  # as it is after the machine went down
    server.start()
    server.stop()
    assert other.poll() is None
    other.kill()
    other.wait()


def test_addresses_are_known_without_starting_anything(var):
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


def run(*argv, **env):
    """Run `python -m rme.run`; return its exit code and output."""
    kept = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "REDIS_URL")}
    return subprocess.run(
        [sys.executable, "-m", "rme.run", *argv],
        cwd=ROOT,
        env=kept | env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["sh", "-c", "exit 3"], 3),
        (["sh", "-c", "kill -9 $$"], 137),
        (["/nowhere/command"], 127),
        ([], 2),
    ],
)
def test_exec_gives_exit_codes_as_a_shell_does(var, command, code):
    addresses = {"DATABASE_URL": "postgres://nobody@nowhere/x", "REDIS_URL": "redis://nowhere/0"}
    assert run("--var", str(var), "exec", "--", *command, **addresses).returncode == code


def pids(word):
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if word in " ".join(process.info["cmdline"] or []):
            found.append(process.pid)
    return found


SCRIPT = """
import sys
from pathlib import Path
from rme.run.programs import Program
from rme.run.supervisor import Supervisor
sleep = "import pathlib, sys, time; pathlib.Path(sys.argv[2]).touch(); time.sleep(600)"
there = sys.argv[1] + "/there"
children = [Program("one", [sys.executable, "-c", sleep, sys.argv[2], there])]
sys.exit(Supervisor(Path(sys.argv[1]), children, {"PORT": "9", "PATH": "/bin"}).up())
"""


@pytest.fixture
def tree(var):
    """Run a supervisor with real engines and a stand-in for a program."""
    mark = f"mark-{var.name}"
    env = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "REDIS_URL")}
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(var), mark], cwd=ROOT, env=env)
    until = time.monotonic() + 120
    while not (var / "there").exists():  # a child just forked would still have our command line
        assert time.monotonic() < until
        time.sleep(0.1)
    yield process, mark, var
    process.kill()
    process.wait()
    assert gone(str(postgres_data(var)), str(sockets(var)))  # or they write into what is removed


def gone(*words, seconds=60):
    until = time.monotonic() + seconds
    while any(pids(word) for word in words):
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left_after_any_end(tree, how):
    process, mark, var = tree
    process.send_signal(how)
    code = process.wait(30)
    assert code == (-9 if how is signal.SIGKILL else 0)
    assert gone(mark, str(postgres_data(var)), str(sockets(var)))


def test_start_right_after_a_kill_succeeds(tree):
    process, _, var = tree
    process.kill()
    process.wait()
    code = "import os, psycopg; psycopg.connect(os.environ['DATABASE_URL']); print('there')"
    done = run("--var", str(var), "exec", "--", sys.executable, "-c", code)
    assert (done.returncode, done.stdout) == (0, "there\n"), done.stderr


def test_exec_during_a_running_service_uses_its_engines(tree):
    process, _, var = tree
    code = "import os, psycopg; psycopg.connect(os.environ['DATABASE_URL']); print('there')"
    held = lock(var)
    done = run("--var", str(var), "exec", "--", sys.executable, "-c", code)
    os.close(held)
    assert (done.returncode, done.stdout) == (0, "there\n"), done.stderr
    assert process.poll() is None
    with connect(var) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_dead_program_is_restarted(tree):
    process, mark, _ = tree
    child = next(pid for pid in pids(mark) if pid != process.pid)
    os.kill(child, signal.SIGKILL)
    until = time.monotonic() + 60
    while not [pid for pid in pids(mark) if pid not in (process.pid, child)]:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_dead_engines_are_restarted_every_time(tree):
    process, _, var = tree
    for _ in range(4):  # three deaths in a row were the end of the service
        server = f"bin/postgres -D {postgres_data(var)}"
        until = time.monotonic() + 60
        while not (first := pids(server)) or not answering(var):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.1)
        for pid in first:
            os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + 30
        while set(pids(server)) & set(first):
            assert time.monotonic() < until
            time.sleep(0.05)
    until = time.monotonic() + 60
    while not answering(var):
        assert time.monotonic() < until
        time.sleep(0.1)
    assert process.poll() is None


def answering(var):
    try:
        with connect(var) as connection:
            return connection.execute("SELECT 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False


def crash(connection):
    """End the process of a connection as a fault in PostgreSQL would."""
    (pid,) = connection.execute("SELECT pg_backend_pid()").fetchone()
    psutil.Process(pid).send_signal(signal.SIGSEGV)


def test_crash_is_found_in_the_log_and_a_killed_process_is_not(var):
    server = Postgres(var)
    server.start()
    with connect(var) as connection:
        (pid,) = connection.execute("SELECT pg_backend_pid()").fetchone()
        crash(connection)
    wait_for(lambda: f"(PID {pid}) was terminated" in server.log.read_text())
    (found,) = wait_for(server.crashes)
    assert found == f"client backend (PID {pid}) was terminated by signal 11: Segmentation fault"
    assert (server.crashes(), Postgres(var).crashes()) == ([], [])
    wait_for(lambda: answers(var))
    with connect(var) as connection:
        (pid,) = connection.execute("SELECT pg_backend_pid()").fetchone()
        psutil.Process(pid).kill()
    wait_for(lambda: f"(PID {pid}) was terminated by signal 9" in server.log.read_text())
    assert server.crashes() == []
    server.stop()


def answers(var):
    try:
        connect(var).close()
    except psycopg.OperationalError:
        return False
    return True


CRASHING = """
import os, signal, psycopg
connection = psycopg.connect(os.environ["DATABASE_URL"])
(pid,) = connection.execute("SELECT pg_backend_pid()").fetchone()
os.kill(pid, signal.SIGSEGV)
try:
    connection.execute("SELECT pg_sleep(5)")
except psycopg.OperationalError:
    pass
"""


def test_a_command_during_which_postgresql_crashed_has_failed(var):
    command = [sys.executable, "-m", "rme.run", "--var", str(var), "exec", "--"]
    env = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "REDIS_URL")}
    done = subprocess.run(
        [*command, sys.executable, "-c", CRASHING],
        cwd=ROOT, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "rme: PostgreSQL crashed: client backend (PID " in done.stderr


@contextmanager
def server_in(folder):
    """Run a server that a test's data folder holds, or a folder in it."""
    server = Postgres(folder, ephemeral=True)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def crash_and_wait(server):
    with connect(server.var) as connection:
        crash(connection)
    wait_for(lambda: "was terminated by signal 11" in server.log.read_text())


@pytest.mark.parametrize("place", ["", "engines"])
def test_crash_in_a_data_folder_fails_the_test_that_uses_it(place):
    with pytest.raises(AssertionError, match="signal 11"), data_folder() as folder:
        if place:
            (folder / place).mkdir(mode=0o755)
            (folder / "postgres").rename(folder / place / "postgres")
        with server_in(folder / place) as server:
            crash_and_wait(server)


def test_crash_in_a_shared_data_folder_is_reported_once_and_at_once():
    with data_folder() as other, data_folder() as folder, server_in(folder) as server:
        assert CRASHES.take() == []
        crash_and_wait(server)
        assert CRASHES.take(other) == []
        (found,) = CRASHES.take()  # as the fixture of all tests does
        assert "was terminated by signal 11" in found
        assert CRASHES.take() == []
        wait_for(lambda: answers(folder))


def test_error_in_a_data_folder_is_raised_and_the_folder_is_forgotten():
    with pytest.raises(ZeroDivisionError), data_folder() as folder:
        raise ZeroDivisionError
    assert not folder.exists()
    assert CRASHES.take() == []


WATCHED = """
import sys
from pathlib import Path
from rme.run.supervisor import Supervisor
sys.exit(Supervisor(Path(sys.argv[1]), [], {"REDIS_URL": "x", "PATH": "/bin"}).up())
"""


def test_crash_is_reported_on_stderr(var):
    service = subprocess.Popen(
        [sys.executable, "-c", WATCHED, str(var)], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    wait_for(lambda: answers(var))
    with connect(var) as connection:
        crash(connection)
    said = service.stderr.readline()
    service.send_signal(signal.SIGTERM)
    assert (service.wait(40), said.partition(" (PID ")[0]) == (
        0,
        "rme: PostgreSQL crashed and restarts: client backend",
    )
