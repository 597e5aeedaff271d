"""The process tree of `make run`: engines, then web, workers and beat, started again when they end.

A supervisor of ours and not honcho: engines must be up before, and down after, everything else,
and the web must finish its requests before the worker goes.
"""

import contextlib
import errno
import fcntl
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rme.run.backoff import RestartBackoff, ending, sentence
from rme.run.engines import Postgres, Valkey
from rme.run.places import engine_env
from rme.run.process import EngineFailed, reason, say, spawn, stop
from rme.run.programs import Program

START_FAILURES = 3
"""How often a program may end by itself before the service was ever up: then it cannot start."""

Child = Program | Postgres | Valkey


@dataclass
class Life:
    """When a child was started last, and when it may be started again."""

    started: float = 0.0
    next_start: float = 0.0
    backoff: RestartBackoff = field(default_factory=RestartBackoff)


class Supervisor:
    """Brings everything up, keeps it up, and takes it down."""

    def __init__(self, var: Path, children: Sequence[Program], env: Mapping[str, str]) -> None:
        self.var = var
        self.env = {name: value for name, value in env.items() if value}
        self.programs = list(children)
        self.engines: list[Postgres | Valkey] = []
        if not env.get("DATABASE_URL"):
            self.engines.append(Postgres(var))
        if not env.get("REDIS_URL"):
            self.engines.append(Valkey(var))
        self.child_env = engine_env(var) | self.env
        self.stopping = threading.Event()
        self.said: bytes | None = None  # what is shown once the web answers
        self.lives = {child.name: Life() for child in (*self.engines, *self.programs)}
        self.came_up = False

    def up(self, prepare: Sequence[Sequence[str]] = ()) -> int:
        """Run until a signal comes; return the exit code, which is 1 if it could not start."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: self.stopping.set())
        try:
            for engine in self.engines:
                self.lives[engine.name].started = time.monotonic()
                engine.start()
            self.said = b""
            for command in prepare:
                code, self.said, errors = self._run(command)
                if self.stopping.is_set():
                    return 0
                if code:
                    return self._fail(f"{' '.join(command[-2:])} failed{self._told(errors)}")
            return self._watch()
        except OSError as error:
            return self._fail(reason(error))
        except EngineFailed as error:
            return self._fail(str(error))
        finally:
            self.down()

    def _told(self, errors: bytes) -> str:
        """Return what a failed command wrote; of a traceback the last line, all of it in a file."""
        text = errors.decode(errors="replace").strip()
        if "Traceback (most recent call last)" not in text:
            return f": {text[-3000:]}" if text else "."
        log = self.var / "log" / "start.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(text)
        return f": {text.rpartition(chr(10))[2][:500]} (more in {log})"

    def _run(self, command: Sequence[str]) -> tuple[int, bytes, bytes]:
        """Run a command to its end, or until we are to stop; gives its exit code and outputs."""
        process = spawn(
            command,
            env=self.child_env,
            death=signal.SIGKILL,
            pipe=True,
            stderr=subprocess.PIPE,
        )
        while True:
            try:
                output, errors = process.communicate(timeout=0.1)
                return process.returncode, output, errors
            except subprocess.TimeoutExpired:
                if self.stopping.is_set():
                    stop(process, signal.SIGINT)

    def _announce(self) -> None:
        """Once the web answers, say how to reach it and write down that it is up."""
        if self.said is None or not self._web_answers():
            return
        self.came_up = True
        try:
            remember(self.var, self.env)
        except OSError as error:  # it runs all the same; only `make demo-json` wants the file
            say(f"rme: {reason(error)}")
        with contextlib.suppress(OSError):  # nobody reads it
            sys.stdout.write(self.said.decode(errors="replace"))
            sys.stdout.flush()
        self.said = None

    def _web_answers(self) -> bool:
        """Ask the web itself, past any proxy that the environment names."""
        host = self.env.get("HOST", "127.0.0.1")
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
        web = http.client.HTTPConnection(host, int(self.env.get("PORT", "8000")), timeout=1)
        try:
            web.request("GET", "/livez")
            return web.getresponse().status < 500  # 400 where ALLOWED_HOSTS names others alone
        except (OSError, http.client.HTTPException):
            return False
        finally:
            web.close()

    def _watch(self) -> int:
        """Start each child, and again whenever it ends, a little later each time, for ever."""
        while not self.stopping.wait(0.25):
            self._announce()
            for child in (*self.engines, *self.programs):
                if (why := self._keep(child)) and self._cannot_start(child):
                    return self._fail(f"{child.name} does not start ({why}); see above.")
        return 0

    def _keep(self, child: Child) -> str | None:
        """Start a child when its time has come, or notice that it ended; return why it ended."""
        life, now = self.lives[child.name], time.monotonic()
        if child.process is not None:
            code = child.process.poll()
            if code is None:
                return None
            stop(child.process, signal.SIGKILL)  # and whatever it left of its session
            child.process = None
            return self._ended(child, ending(code))
        if now < life.next_start:
            return None
        life.started = now
        try:
            if isinstance(child, Program):
                child.start(self.child_env)
            else:
                child.start_again()
        except EngineFailed as error:
            return self._ended(child, str(error))
        except OSError as error:
            return self._ended(child, reason(error))
        return None

    def _ended(self, child: Child, why: str) -> str:
        life, now = self.lives[child.name], time.monotonic()
        lived = now - life.started
        delay = life.backoff.failed(lived)
        life.next_start = now + delay
        say(f"rme: {sentence(child.name, why, lived, life.backoff.failures, delay)}")
        return why

    def _cannot_start(self, child: Child) -> bool:
        """Return whether to give up: a mistake in the settings, found before all was ever up."""
        if self.came_up or not isinstance(child, Program):
            return False
        return self.lives[child.name].backoff.failures >= START_FAILURES

    def down(self) -> None:
        """Stop everything: programs in their order, then the engines."""
        for program in self.programs:
            if program.process:
                stop(program.process, signal.SIGTERM)
        for engine in reversed(self.engines):
            engine.stop()

    def _fail(self, why: str) -> int:
        say(f"rme: {why}")
        return 1


def port_refusal(host: str, port: int) -> str | None:
    """Say in a sentence why a port cannot be listened on; None if it can."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                other = port % 65535 + 1
                return f"Port {port} is taken by another program; try PORT={other} make run."
            if error.errno == errno.EACCES:
                return f"Port {port} is for root alone; try PORT=8000 make run."
            return f"HOST={host} is not an address of this machine."
    return None


def lock(var: Path) -> int | None:
    """Take the data folder for this process; None if another one runs on it."""
    (var / "run").mkdir(parents=True, exist_ok=True)
    descriptor = os.open(var / "run" / "lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def state(var: Path) -> dict[str, str] | None:
    """Give PORT and BASE_URL of the service that runs in a data folder; None if none does.

    Empty while it is still starting. A file that a killed service left is not believed.
    """
    descriptor = lock(var)
    if descriptor is not None:
        os.close(descriptor)
        return None
    try:
        found = json.loads((var / "run" / "state.json").read_text())
    except (OSError, ValueError):
        return {}
    return {"PORT": found["port"]} | ({"BASE_URL": found["base_url"]} if found["base_url"] else {})


def remember(var: Path, env: Mapping[str, str]) -> None:
    """Write down what runs, for `make demo-json`."""
    state = {"pid": os.getpid(), "port": env["PORT"], "base_url": env.get("BASE_URL", "")}
    (var / "run" / "state.json").write_text(json.dumps(state))
