"""The process tree of `make run`: engines, then web, workers and beat, started again when they end.

Not honcho, because the engines must start before and stop after all other processes, and the web
server must finish its requests before the worker stops.
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
from functools import partial
from pathlib import Path

from rme.run.engines import Postgres, Valkey
from rme.run.forks import SUPERVISOR
from rme.run.keeping import KeptProcess, keep
from rme.run.places import engine_env
from rme.run.process import EngineFailed, reap_orphans, reason, say, spawn, stop
from rme.run.programs import Program

START_FAILURES = 3
"""How often a program may end before the service was up once: then the service cannot start."""


class Supervisor:
    """Starts all children, restarts those that end, and stops them."""

    def __init__(self, var: Path, children: Sequence[Program], env: Mapping[str, str]) -> None:
        self.var = var
        self.env = {name: value for name, value in env.items() if value}
        self.programs = list(children)
        self.engines: list[Postgres | Valkey] = []
        if not env.get("DATABASE_URL"):
            self.engines.append(Postgres(var))
        if not env.get("REDIS_URL"):
            self.engines.append(Valkey(var))
        self.child_env = engine_env(var) | self.env | {SUPERVISOR: str(os.getpid())}
        self.stopping = threading.Event()
        self.greeting: bytes | None = None  # written to the terminal once the web answers
        self.kept_engines = [
            KeptProcess(engine.name, engine.start_again, partial(_poll, engine))
            for engine in self.engines
        ]
        self.kept_programs = [
            KeptProcess(program.name, partial(program.start, self.child_env), program.poll)
            for program in self.programs
        ]
        self.came_up = False

    def up(self, prepare: Sequence[Sequence[str]] = ()) -> int:
        """Run until a signal comes; return the exit code, which is 1 if it could not start."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: self.stopping.set())
        try:
            for engine, kept in zip(self.engines, self.kept_engines, strict=True):
                kept.is_running = kept.backoff.begin()
                engine.start()
            self.greeting = b""
            for command in prepare:
                code, self.greeting, errors = self._run(command)
                if self.stopping.is_set():
                    return 0
                if code:
                    return self._fail(f"{' '.join(command[-2:])} failed{self._shorten(errors)}")
            return keep([*self.kept_engines, *self.kept_programs], self.stopping, self._look_around)
        except OSError as error:
            return self._fail(reason(error))
        except EngineFailed as error:
            return self._fail(str(error))
        finally:
            self.down()

    def _shorten(self, errors: bytes) -> str:
        """Return a command's error output; of a traceback its last line, the rest in a file."""
        text = errors.decode(errors="replace").strip()
        if "Traceback (most recent call last)" not in text:
            return f": {text[-3000:]}" if text else "."
        log = self.var / "log" / "start.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(text)
        return f": {text.rpartition(chr(10))[2][:500]} (more in {log})"

    def _run(self, command: Sequence[str]) -> tuple[int, bytes, bytes]:
        """Run a command to its end, or until a signal to stop; return its exit code and outputs."""
        process = spawn(
            command, env=self.child_env, death=signal.SIGKILL, pipe=True, stderr=subprocess.PIPE
        )
        while True:
            try:
                output, errors = process.communicate(timeout=0.1)
                return process.returncode, output, errors
            except subprocess.TimeoutExpired:
                if self.stopping.is_set():
                    stop(process, signal.SIGINT)

    def _announce(self) -> None:
        """Once the web answers, write the greeting, and the state for `make demo-json`."""
        if self.greeting is None or not self._web_answers():
            return
        self.came_up = True
        try:
            remember(self.var, self.env)
        except OSError as error:  # only `make demo-json` needs the file
            say(f"rme: {reason(error)}")
        with contextlib.suppress(OSError):  # stdout was closed
            sys.stdout.write(self.greeting.decode(errors="replace"))
            sys.stdout.flush()
        self.greeting = None

    def _web_answers(self) -> bool:
        """Return whether the web server answers; the environment's proxies are not used."""
        host = self.env.get("HOST", "127.0.0.1")
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 compared, not bound
        web = http.client.HTTPConnection(host, int(self.env.get("PORT", "8000")), timeout=1)
        try:
            web.request("GET", "/livez")
            return web.getresponse().status < 500  # 400 if ALLOWED_HOSTS does not list it
        except (OSError, http.client.HTTPException):
            return False
        finally:
            web.close()

    def _look_around(self) -> int | None:
        """Do what is due besides; return 1 if a program ends again and again before the service was
        up once.
        """
        self._announce()
        self._report_crashes()
        self._look_after_orphans()
        for kept in () if self.came_up else self.kept_programs:
            if kept.backoff.failures >= START_FAILURES:
                return self._fail(f"{kept.name} does not start ({kept.cause}); see above.")
        return None

    def _report_crashes(self) -> None:
        """Report crashes of PostgreSQL's processes: the server then restarts by itself."""
        for engine in self.engines:
            if isinstance(engine, Postgres):
                for crash in engine.crashes():
                    say(f"rme: PostgreSQL crashed and restarts: {crash} (more in {engine.log})")

    def _look_after_orphans(self) -> None:
        for program in self.programs:
            if time.monotonic() > program.predecessor_until:
                program.end_predecessor()
        children = (child.process for child in (*self.engines, *self.programs))
        reap_orphans({process.pid for process in children if process is not None})

    def down(self) -> None:
        """Stop the programs in their order, then the engines."""
        for program in self.programs:
            program.end_predecessor()
            if program.process:
                stop(program.process, signal.SIGTERM)
        for engine in reversed(self.engines):
            engine.stop()

    def _fail(self, problem: str) -> int:
        say(f"rme: {problem}")
        return 1


def _poll(engine: Postgres | Valkey) -> int | None:
    """Return an engine's exit code once it has ended; end the rest of its process group."""
    assert engine.process is not None
    code = engine.process.poll()
    if code is not None:
        stop(engine.process, signal.SIGKILL)
        engine.process = None
    return code


def port_refusal(host: str, port: int) -> str | None:
    """Return a sentence about why a port cannot be used; None if it can."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                next_port = port % 65535 + 1
                return f"Port {port} is taken by another program; try PORT={next_port} make run."
            if error.errno == errno.EACCES:
                return f"Port {port} is for root alone; try PORT=8000 make run."
            return f"HOST={host} is not an address of this machine."
    return None


def lock(var: Path) -> int | None:
    """Lock the data folder for this process; None if another process has locked it."""
    (var / "run").mkdir(parents=True, exist_ok=True)
    descriptor = os.open(var / "run" / "lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def state(var: Path) -> dict[str, str] | None:
    """Return PORT and BASE_URL of the service that runs in a data folder; None if none runs.

    Empty while it is starting. The file of a service that was killed is ignored.
    """
    descriptor = lock(var)
    if descriptor is not None:
        os.close(descriptor)
        return None
    try:
        content = json.loads((var / "run" / "state.json").read_text())
    except (OSError, ValueError):
        return {}
    return {"PORT": content["port"]} | (
        {"BASE_URL": content["base_url"]} if content["base_url"] else {}
    )


def remember(var: Path, env: Mapping[str, str]) -> None:
    """Store PORT and BASE_URL of this service for `make demo-json`."""
    state = {"pid": os.getpid(), "port": env["PORT"], "base_url": env.get("BASE_URL", "")}
    (var / "run" / "state.json").write_text(json.dumps(state))
