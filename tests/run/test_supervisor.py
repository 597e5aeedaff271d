"""The process tree, with stand-ins for its programs and no engine."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rme.run.programs import Program
from rme.run.supervisor import Supervisor, lock, port_refusal, state
from tests.service import ROOT, free_port

ELSEWHERE = {"DATABASE_URL": "x", "REDIS_URL": "x"}

SCRIPT = """
import sys
from pathlib import Path
from rme.run.programs import Program
from rme.run.supervisor import Supervisor, lock
var, port = Path(sys.argv[1]), sys.argv[2]
held = lock(var)
ends = (
    "import pathlib, signal, sys, time\\n"
    "def end(*_):\\n"
    "    with open(sys.argv[1], 'a') as file: file.write(sys.argv[2] + ' ')\\n"
    "    sys.exit()\\n"
    "signal.signal(signal.SIGTERM, end)\\n"
)
serve = "import http.server as h; h.HTTPServer(('127.0.0.1', int(sys.argv[3])), "
serve += "h.SimpleHTTPRequestHandler).serve_forever()"
python = sys.executable
children = [
    Program("web", [python, "-c", ends + serve, str(var / "ends"), "web", port]),
    Program("worker", [python, "-c", ends + "time.sleep(60)", str(var / "ends"), "worker"]),
]
env = {"DATABASE_URL": "x", "REDIS_URL": "x", "PORT": port, "PATH": "/bin"}
if sys.argv[3:] == ["dying"]:
    die = "import os, pathlib, sys, time; file = pathlib.Path(sys.argv[1]); "
    die += "again = file.exists(); file.touch(); time.sleep(0.4); "
    die += "os.kill(os.getpid(), 9) if again else sys.exit(3)"
    children.append(Program("dying", [python, "-c", die, str(var / "died")]))
if sys.argv[3:] == ["talking"]:
    talk = "import pathlib, sys, time; print('word ' * 400_000); sys.stdout.flush(); "
    talk += "[print('line') for _ in range(50_000)]; sys.stdout.flush(); "
    talk += "pathlib.Path(sys.argv[1]).touch(); time.sleep(60)"
    children.append(Program("talking", [python, "-c", talk, str(var / "talked")]))
if sys.argv[3:] == ["slowly"]:
    prepare = [[python, "-c", "import time; print('begun'); time.sleep(60)"]]
else:
    prepare = [[python, "-c", "print('how to reach it')"]]
print("started", flush=True)
sys.exit(Supervisor(var, children, env).up(prepare))
"""


def start(var: Path, *argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(var), *argv],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_start_reports_the_address_and_stops_programs_in_order(tmp_path):
    port = str(free_port())
    process = start(tmp_path, port)
    assert process.stdout.readline() == "started\n"
    assert process.stdout.readline() == "how to reach it\n"
    socket.create_connection(("127.0.0.1", int(port)), timeout=5).close()
    assert json.loads((tmp_path / "run" / "state.json").read_text()) == {
        "pid": process.pid,
        "port": port,
        "base_url": "",
    }
    assert state(tmp_path) == {"PORT": port}
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert (tmp_path / "ends").read_text() == "web worker "
    assert state(tmp_path) is None  # though the file is there: the lock is not held
    process.communicate()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_stop_during_preparation_starts_nothing(tmp_path, how):
    process = start(tmp_path, "9", "slowly")
    assert process.stdout.readline() == "started\n"
    time.sleep(0.5)
    process.send_signal(how)
    output, errors = process.communicate(timeout=20)
    assert (process.returncode, output, errors) == (0, "", "")


def test_starting_service_has_an_empty_state(tmp_path):
    held = lock(tmp_path)
    assert lock(tmp_path) is None
    assert state(tmp_path) == {}
    os.close(held)
    assert state(tmp_path) is None


def test_a_failed_preparation_is_reported(tmp_path, capsys, _handlers):
    failing = [sys.executable, "-c", "raise SystemExit('no way')"]
    assert Supervisor(tmp_path, [], ELSEWHERE | {"PORT": "9"}).up([failing]) == 1
    assert capsys.readouterr().err == "rme: -c raise SystemExit('no way') failed: no way\n"


def test_unusable_port_is_reported():
    port = free_port()
    assert port_refusal("127.0.0.1", port) is None
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", port))
        busy.listen()
        assert port_refusal("127.0.0.1", port) == (
            f"Port {port} is taken by another program; try PORT={port + 1} make run."
        )
    # 192.0.2.0/24 is for documentation (RFC 5737): nobody's address, so none of this machine.
    assert port_refusal("192.0.2.1", port) == "HOST=192.0.2.1 is not an address of this machine."


@pytest.fixture
def _handlers():
    """Restore the signal handlers, which a supervisor replaces."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_program_failing_to_start_is_reported(tmp_path, capsys, _handlers):
    failing = Program("broken", [sys.executable, "-c", "raise SystemExit(3)"])
    assert Supervisor(tmp_path, [failing], ELSEWHERE | {"PORT": "9"}).up() == 1
    told = capsys.readouterr().err.splitlines()
    assert [line.partition(" after ")[0] for line in told[:-1]] == [
        "rme: broken ended (exit code 3)",
        "rme: broken ended (exit code 3)",
        "rme: broken ended (exit code 3)",
    ]
    assert told[-1] == "rme: broken does not start (exit code 3); see above."


def test_missing_program_is_reported(tmp_path, capsys, _handlers):
    missing = Program("missing", ["/nowhere/program"])
    assert Supervisor(tmp_path, [missing], ELSEWHERE | {"PORT": "9"}).up() == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        "rme: missing does not start (/nowhere/program cannot be used: "
        "No such file or directory.); see above."
    )


def test_traceback_of_a_preparation_is_written_to_a_file(tmp_path, capsys, _handlers):
    failing = [sys.executable, "-c", "raise ValueError('no such database')"]
    assert Supervisor(tmp_path, [], ELSEWHERE | {"PORT": "9"}).up([failing]) == 1
    log = tmp_path / "log" / "start.log"
    assert capsys.readouterr().err == (
        "rme: -c raise ValueError('no such database') failed: "
        f"ValueError: no such database (more in {log})\n"
    )
    assert log.read_text().startswith("Traceback (most recent call last):")


def test_service_once_up_is_never_given_up(tmp_path):
    port = str(free_port())
    process = start(tmp_path, port, "dying")
    try:
        assert process.stdout.readline() == "started\n"
        assert process.stdout.readline() == "how to reach it\n"
        ends = []
        while len(ends) < 5:  # one more than it had before all was given up
            line = process.stderr.readline()
            assert line, "it gave up"
            if "dying ended" in line:
                ends.append(line.partition(" after ")[0])
        assert set(ends) == {
            "rme: dying ended (exit code 3)",
            "rme: dying ended (signal 9, SIGKILL)",
        }
        socket.create_connection(("127.0.0.1", int(port)), timeout=5).close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()


def test_full_disk_does_not_end_a_running_service(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "state.json").symlink_to("/dev/full")
    port = str(free_port())
    process = start(tmp_path, port)
    assert process.stdout.readline() == "started\n"
    assert process.stdout.readline() == "how to reach it\n"
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=20)
    assert (process.returncode, output) == (0, "")
    assert "rme: No space left on device.\n" in errors


def test_closed_terminal_does_not_end_the_service(tmp_path):
    port = str(free_port())
    process = start(tmp_path, port, "talking")
    assert process.stdout.readline() == "started\n"
    process.stderr.close()
    process.stdout.close()
    until = time.monotonic() + 60
    while not (tmp_path / "talked").exists():  # two megabytes through a pipe that nobody reads
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
