"""The process tree of `make run`: engines, then web, worker and beat, restarted when they die.

A supervisor of ours and not honcho: engines must be up before, and down after, everything else,
and the web must finish its requests before the worker goes.
"""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rme.run.engines import Postgres, Valkey
from rme.run.places import engine_env
from rme.run.process import EngineFailed, spawn, stop

FAILURES_LIMIT = 3
STEADY_SECONDS = 10.0


@dataclass
class Program:
    """A child that is kept running."""

    name: str
    command: Sequence[str]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    failures: int = 0
    next_start: float = 0.0
    reader: threading.Thread | None = field(default=None, repr=False)

    def start(self, env: Mapping[str, str]) -> None:
        self.started = time.monotonic()
        self.process = spawn(self.command, env=env, death=signal.SIGTERM, pipe=True)
        self.reader = threading.Thread(target=self._show, args=(self.process,), daemon=True)
        self.reader.start()

    def _show(self, process: subprocess.Popen[bytes]) -> None:
        """Pass the child's output on, each line with its name."""
        assert process.stdout is not None  # spawn(pipe=True)
        for line in process.stdout:
            sys.stderr.write(f"{self.name:>6} | {line.decode(errors='replace')}")
            sys.stderr.flush()


def programs(env: Mapping[str, str]) -> list[Program]:
    """Give the programs of the service, in the order in which they are stopped."""
    python = sys.executable
    host, port = env.get("HOST", "127.0.0.1"), env.get("PORT", "8000")
    web = ["granian", "--interface", "wsgi", "rme.wsgi:application", "--host", host]
    web += ["--port", port, "--workers", env.get("WEB_WORKERS", "2")]
    web += ["--blocking-threads", env.get("WEB_THREADS", "4"), "--log-level", "warning"]
    worker = ["celery", "--quiet", "-A", "rme.celery", "worker", "--loglevel", "WARNING"]
    worker += ["--concurrency", env.get("WORKER_CONCURRENCY", "2")]
    worker += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    worker += ["--queues", "email,sms,push,default"]
    beat = [
        "celery",
        "--quiet",
        "-A",
        "rme.celery",
        "beat",
        "--loglevel",
        "WARNING",
        "--pidfile",
        "",
    ]
    beat += ["--schedule", f"{env['RME_VAR']}/run/beat-schedule"]
    commands = {"web": web, "worker": worker, "beat": beat}
    return [Program(name, [python, "-m", *command]) for name, command in commands.items()]


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

    def up(self, prepare: Sequence[Sequence[str]] = ()) -> int:
        """Run until a signal comes or something keeps failing; gives the exit code."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self.stopping.set())
        try:
            for engine in self.engines:
                engine.start()
            said = b""
            for command in prepare:
                done = subprocess.run(command, env=self.child_env, capture_output=True, check=False)
                if done.returncode:
                    sys.stderr.write(done.stderr.decode(errors="replace")[-3000:])
                    return self._fail(f"{' '.join(command[-2:])} failed.")
                said = done.stdout
            for program in self.programs:
                program.start(self.child_env)
            if self._ready():
                sys.stdout.write(said.decode(errors="replace"))
                sys.stdout.flush()
            return self._watch()
        except EngineFailed as error:
            return self._fail(str(error))
        finally:
            self.down()

    def _ready(self) -> bool:
        """Wait until the web answers."""
        port = self.env.get("PORT", "8000")
        until = time.monotonic() + 60
        while time.monotonic() < until and not self.stopping.is_set():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/livez", timeout=1):
                    return True
            except (urllib.error.URLError, OSError):
                if any(p.process and p.process.poll() is not None for p in self.programs):
                    return False  # _watch tells what died
                time.sleep(0.1)
        return False

    def _watch(self) -> int:
        """Restart what dies, a little later each time; give up on what cannot live."""
        while not self.stopping.wait(0.25):
            for engine in self.engines:
                if engine.process and engine.process.poll() is not None:
                    sys.stderr.write(f"{engine.name} died; starting it again.\n")
                    engine.start()
            for program in self.programs:
                if not self._keep(program):
                    return self._fail(f"{program.name} keeps failing; see above.")
        return 0

    def _keep(self, program: Program) -> bool:
        now = time.monotonic()
        if program.process is None:
            if now >= program.next_start:
                program.start(self.child_env)
            return True
        if program.process.poll() is None:
            if now - program.started > STEADY_SECONDS:
                program.failures = 0
            return True
        stop(program.process, signal.SIGKILL)  # and whatever it left of its session
        program.process = None
        program.failures += 1
        program.next_start = now + 0.5 * 2**program.failures
        sys.stderr.write(f"{program.name} ended; starting it again.\n")
        return program.failures < FAILURES_LIMIT

    def down(self) -> None:
        """Stop everything: programs in their order, then the engines."""
        for program in self.programs:
            if program.process:
                stop(program.process, signal.SIGTERM)
        for engine in reversed(self.engines):
            engine.stop()

    def _fail(self, sentence: str) -> int:
        sys.stderr.write(f"rme: {sentence}\n")
        return 1


def port_is_free(host: str, port: int) -> bool:
    """Say whether a port can be listened on."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


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


def remember(var: Path, env: Mapping[str, str]) -> None:
    """Write down what runs, for `make demo-json`."""
    state = {"pid": os.getpid(), "port": env["PORT"], "base_url": env.get("BASE_URL", "")}
    (var / "run" / "state.json").write_text(json.dumps(state))
