"""Starts and stops child processes so that none is left behind."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

STOP_SECONDS = 20.0
_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
_libc = ctypes.CDLL(None, use_errno=True)


class EngineFailed(Exception):
    """An engine cannot be started; the text is one sentence for the terminal."""


def say(sentence: str) -> None:
    """Write a line to the terminal; do nothing if there is none any more."""
    with contextlib.suppress(OSError, ValueError):  # the other end of a pipe was closed
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()


def reason(error: OSError) -> str:
    """Return a sentence that names the file or folder that cannot be used, and why."""
    why = error.strerror or str(error)
    return f"{error.filename} cannot be used: {why}." if error.filename else f"{why}."


def die_with_parent(parent: int, death: signal.Signals) -> None:
    """Have the kernel send this process a signal when its parent ends (prctl PR_SET_PDEATHSIG)."""
    _libc.prctl(_PR_SET_PDEATHSIG, death)
    if os.getppid() != parent:  # it has ended before the line above
        os._exit(1)


def name_process(name: str) -> None:
    """Set the name by which `ps` and `top` show this process (15 bytes at most)."""
    _libc.prctl(_PR_SET_NAME, name.encode()[:15])


def spawn(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    death: signal.Signals,
    log: Path | None = None,
    user: int | None = None,
    pipe: bool = False,
    stderr: int = subprocess.STDOUT,
) -> subprocess.Popen[bytes]:
    """Start a child in a session of its own, so that Ctrl-C reaches only this process.

    If this process is killed, the kernel sends the child `death`. The child's output goes to a
    file, or to a pipe (`stderr` as in subprocess).
    """

    parent = os.getpid()
    if log:
        log.parent.mkdir(parents=True, exist_ok=True)
    output = log.open("ab") if log else subprocess.PIPE if pipe else None
    try:
        return subprocess.Popen(
            command,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=stderr if output is not None else None,
            start_new_session=True,
            preexec_fn=partial(die_with_parent, parent, death),  # noqa: PLW1509 (two system calls, no lock)
            user=user,
            group=user,
            extra_groups=[] if user is not None else None,
            cwd="/" if user is not None else None,
        )
    finally:
        if log and output is not None and not isinstance(output, int):
            output.close()


def stop(
    process: subprocess.Popen[bytes], how: signal.Signals, seconds: float = STOP_SECONDS
) -> None:
    """Stop a child and its process group; kill what has not ended in time."""
    if process.poll() is None:
        process.send_signal(how)
        with contextlib.suppress(subprocess.TimeoutExpired):  # it is killed below
            process.wait(seconds)
    kill_group(process)
    process.wait()


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the remaining processes of a child's process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # none is left
        os.killpg(process.pid, signal.SIGKILL)
