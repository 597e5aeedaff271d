"""Data folders that cannot be used: a sentence and exit code 1, never a traceback."""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.service import ROOT

ADVICE = "RME_VAR names the data folder, which this user must own.\n"
COMMANDS = [["up"], ["demo-json"], ["exec", "--", "true"]]


def run(var, *command, wrapped=(), preexec_fn=None, **changes):
    """Run `python -m rme.run`; return its exit code and what it wrote to the terminal."""
    absent = ("DATABASE_URL", "REDIS_URL")
    env = {k: v for k, v in os.environ.items() if k not in absent} | {"PORT": "8179"} | changes
    done = subprocess.run(
        [*wrapped, sys.executable, "-m", "rme.run", "--var", str(var), *command],
        cwd=ROOT,
        env={name: value for name, value in env.items() if value is not None},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=preexec_fn,
    )
    return done.returncode, done.stderr


def without_roots_power():
    """Let the file permissions hold for this process, though it be root's (capabilities(7))."""
    for capability in (0, 1, 2, 3):  # CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


@pytest.mark.parametrize("command", COMMANDS)
def test_file_as_data_folder_is_reported(tmp_path, command):
    (tmp_path / "var").touch()
    assert run(tmp_path / "var", *command) == (
        1,
        f"rme: {tmp_path}/var/run cannot be used: Not a directory. {ADVICE}",
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_unwritable_folder_is_reported(tmp_path, command):
    var = tmp_path / "var"
    var.mkdir(mode=0o555)
    assert run(var, *command, preexec_fn=without_roots_power) == (
        1,
        f"rme: {var}/run cannot be used: Permission denied. {ADVICE}",
    )


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a folder of somebody else's")
@pytest.mark.parametrize("command", COMMANDS)
def test_folder_of_another_user(tmp_path, command):
    var = tmp_path / "var"
    (var / "run").mkdir(parents=True)
    (var / "run" / "lock").touch(mode=0o600)
    shutil.chown(var / "run" / "lock", 1234)
    assert run(var, *command, preexec_fn=without_roots_power) == (
        1,
        f"rme: {var}/run/lock cannot be used: Permission denied. {ADVICE}",
    )


@pytest.fixture
def place():
    """Make a folder that PostgreSQL's own user can enter."""
    with tempfile.TemporaryDirectory(prefix="rme-test-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        yield folder


def mounted(place, options):
    """Return how to run a command with a file system of its own in a folder, or skip the test."""
    script = f'mount -t tmpfs -o {options} tmpfs {place} && exec "$@"'
    wrapped = ["unshare", "--mount", "sh", "-c", script, "sh"]
    tried = subprocess.run([*wrapped, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"this machine lets nobody mount: {tried.stderr.strip()}")
    return wrapped


@pytest.mark.parametrize("command", COMMANDS)
def test_read_only_folder_is_reported(place, command):
    wrapped = mounted(place, "ro")
    assert run(place, *command, wrapped=wrapped) == (
        1,
        f"rme: {place}/run cannot be used: Read-only file system. {ADVICE}",
    )


@pytest.mark.parametrize("size", ["4k", "4m"])
def test_full_folder_is_reported(place, size):
    wrapped = mounted(place, f"size={size},mode=755")
    code, told = run(place, "up", wrapped=wrapped)
    assert code == 1
    assert "No space left on device" in told
    assert "Traceback" not in told
    assert told.startswith("rme: ")
    assert told.count("\n") == 1


def test_no_home_is_needed(place):
    absent = {"HOME": None, "USER": None, "LOGNAME": None}
    migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    assert run(place, "exec", "--", *migrate, **absent) == (0, "")
