"""Starts and stops child processes so that none is left behind."""

import _thread
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path

STOP_SECONDS = 20.0
CHECK_SECONDS = 0.1
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

    The supervisor is the parent's parent, and has called `adopt_orphans`.
    """

    main = threading.get_ident()
    watching = False

    def check(*_: object) -> None:
        nonlocal watching
        if os.getppid() != parent and not watching:
            watching = True
            _thread.start_new_thread(watch, ())  # takes no lock, which this may have interrupted

    def watch() -> None:
        while os.getppid() == supervisor:
            time.sleep(CHECK_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)
        while True:  # a signal that comes just as Python's main thread falls asleep doesn't wake it
            time.sleep(CHECK_SECONDS)
            signal.pthread_kill(main, signal.SIGRTMIN)

    signal.signal(signal.SIGRTMIN, check)
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGRTMIN)  # it comes for each parent that ends
    check()


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
