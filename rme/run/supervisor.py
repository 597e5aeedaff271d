"""The process tree of `make run`: engines, then web, worker and beat, restarted when they die.

A supervisor of ours and not honcho: engines must be up before, and down after, everything else,
and the web must finish its requests before the worker goes.
"""

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

from rme.run.engines import Postgres, Valkey
from rme.run.places import engine_env
from rme.run.process import EngineFailed, spawn, stop

FAILURES_LIMIT = 3
"""How often in a row a child may die soon after its start before all is given up."""
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
        self.said: bytes | None = None  # what is shown once the web answers
        self.deaths = {engine.name: (0.0, 0) for engine in self.engines}  # the last, and how many

    def up(self, prepare: Sequence[Sequence[str]] = ()) -> int:
        """Run until a signal comes or something keeps failing; gives the exit code."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: self.stopping.set())
        try:
            for engine in self.engines:
                engine.start()
            self.said = b""
            for command in prepare:
                code, self.said, errors = self._run(command)
                if self.stopping.is_set():
                    return 0
                if code:
                    sys.stderr.write(errors.decode(errors="replace")[-3000:])
                    return self._fail(f"{' '.join(command[-2:])} failed.")
            for program in self.programs:
                program.start(self.child_env)
            return self._watch()
        except EngineFailed as error:
            return self._fail(str(error))
        finally:
            self.down()

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
        remember(self.var, self.env)
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
        """Restart what dies, a little later each time; give up on what cannot live."""
        while not self.stopping.wait(0.25):
            self._announce()
            for engine in self.engines:
                if not self._keep_engine(engine):
                    return self._fail(f"{engine.name} keeps dying: see {self.var}/log.")
            for program in self.programs:
                if not self._keep(program):
                    return self._fail(f"{program.name} keeps failing; see above.")
        return 0

    def _keep_engine(self, engine: Postgres | Valkey) -> bool:
        if engine.process and engine.process.poll() is not None:
            last, times = self.deaths[engine.name]
            times = times + 1 if time.monotonic() - last < STEADY_SECONDS else 1
            self.deaths[engine.name] = (time.monotonic(), times)
            if times == FAILURES_LIMIT:
                return False
            sys.stderr.write(f"{engine.name} died; starting it again.\n")
            engine.start()
        return True

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
