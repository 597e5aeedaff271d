"""Starts and stops child processes so that none is left behind."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path

STOP_SECONDS = 20.0
CHECK_SECONDS = 0.1
ORPHAN_SECONDS = 0.5
"""How often a process asks whether its supervisor still runs."""
_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_SET_CHILD_SUBREAPER = 1, 15, 36
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
    problem = error.strerror or str(error)
    return f"{error.filename} cannot be used: {problem}." if error.filename else f"{problem}."


def die_with_parent(parent: int, death: signal.Signals) -> None:
    """Have the kernel send this process a signal when its parent ends (prctl PR_SET_PDEATHSIG)."""
    _libc.prctl(_PR_SET_PDEATHSIG, death)
    if os.getppid() != parent:  # it has ended before the line above
        os._exit(1)


def die_with_supervisor(parent: int, supervisor: int) -> None:
    """Have this process get SIGTERM when its supervisor ends, and not when its parent does.

    The supervisor is the parent's parent, and has called `adopt_orphans`. A timer asks, and not
    prctl: a signal that comes once is lost if the main thread falls asleep at that moment.
    """

    def check(*_: object) -> None:
        if os.getppid() not in (parent, supervisor):
            signal.signal(signal.SIGALRM, lambda *_: None)  # each tick wakes the main thread
            os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGALRM, check)
    signal.setitimer(signal.ITIMER_REAL, ORPHAN_SECONDS, ORPHAN_SECONDS)


def adopt_orphans() -> None:
    """Become the parent of all processes below this one whose own parent ends."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)


def reap_orphans(children: Collection[int]) -> None:
    """Let adopted processes that have ended go; the exit codes of `children` stay."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # there is no child
            return
        if ended is None or ended.si_pid in children:
            return
        os.waitpid(ended.si_pid, 0)


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
    signal_group(process.pid, signal.SIGKILL)
    process.wait()


def signal_group(group: int, how: signal.Signals) -> bool:
    """Send a signal to the processes of a process group; return whether there are any."""
    try:
        os.killpg(group, how)
    except (ProcessLookupError, PermissionError):
        return False
    return True
