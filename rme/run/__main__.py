"""`python -m rme.run`: `up` runs the whole service, `web` only the web server, and `exec` a command
with the embedded PostgreSQL and Valkey running.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from rme.run import programs
from rme.run.engines import EngineFailed, Postgres, Valkey
from rme.run.places import engine_env, postgres_data, sockets
from rme.run.process import adopt_orphans, reason, say
from rme.run.supervisor import Supervisor, lock, port_refusal, state

ROOT = Path(__file__).resolve().parent.parent.parent


def up(var: Path) -> int:
    """Run the whole service until it is stopped; return the exit code."""
    env = {**_environment(), "RME_VAR": str(var), "PYTHONUNBUFFERED": "1"}
    # simple-salesforce can name no other audience, and one should be able to try the demo with it.
    env.setdefault("JWT_AUDIENCES", "https://login.salesforce.com")
    host, port = env.setdefault("HOST", "127.0.0.1"), env.setdefault("PORT", "8000")
    if not port.isdigit() or not 0 < int(port) < 65536:
        return _say(f"PORT={port} is not a port number.")
    if refusal := programs.refusal(env):
        return _say(refusal)
    lock_descriptor = lock(var)
    if lock_descriptor is None:
        return _say("It is running already in this folder (another `make run`).")
    if refusal := port_refusal(host, int(port)):
        return _say(refusal)
    (var / "run" / "state.json").unlink(missing_ok=True)  # of a service that was killed
    adopt_orphans()
    demo = [sys.executable, str(ROOT / "manage.py"), "demo", "--migrate"]
    try:
        return Supervisor(var, programs.programs(env), env).up([demo])
    finally:
        (var / "run" / "state.json").unlink(missing_ok=True)


def execute(command: list[str], var: Path | None) -> int:
    """Run a command with the engines running; return its exit code, or 1 if PostgreSQL crashed.

    If a service runs in the folder, its engines are used. Without `var` the engines run in a new
    folder, which is deleted afterwards.
    """
    inherited = _environment()
    folder = var or Path(tempfile.mkdtemp(prefix="rme-", dir="/var/tmp"))
    if var is None:
        folder.chmod(0o755)  # PostgreSQL's own user must be able to reach its data in it
    lock_descriptor = lock(folder)
    engines: list[Postgres | Valkey] = []
    if lock_descriptor is not None and "DATABASE_URL" not in inherited:
        engines.append(Postgres(folder, ephemeral=var is None))
    if lock_descriptor is not None and "REDIS_URL" not in inherited:
        engines.append(Valkey(folder))
    env = engine_env(folder) | inherited | {"RME_VAR": str(folder)}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        for engine in engines:
            engine.start()
        code = _run(command, env)
        crashes = [
            each for engine in engines if isinstance(engine, Postgres) for each in engine.crashes()
        ]
        for crash in crashes:
            _say(f"PostgreSQL crashed: {crash}")
        return code or bool(crashes)
    except EngineFailed as error:
        return _say(str(error))
    except KeyboardInterrupt:
        return 130
    finally:
        for engine in reversed(engines):
            engine.stop()
        if lock_descriptor is not None:
            os.close(lock_descriptor)
        if var is None:
            for path in (folder, sockets(folder), postgres_data(folder)):
                shutil.rmtree(path, ignore_errors=True)


def _run(command: Sequence[str], env: Mapping[str, str]) -> int:
    """Run a command to its end; return its exit code as a shell does (128 + signal)."""
    try:
        child = subprocess.Popen(command, env=env)
    except OSError as error:
        _say(f"{command[0]} cannot be run: {error.strerror}.")
        return 127
    # Ctrl-C reaches the command too, which may have a report to finish.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    code = child.wait()
    return 128 - code if code < 0 else code


def _environment() -> dict[str, str]:
    """Return the environment without empty variables: they count as absent."""
    return {name: value for name, value in os.environ.items() if value}


def demo_json(var: Path) -> int:
    """Print the demo's addresses and secrets as JSON; of the running service, if one runs."""
    running = state(var)
    if running == {}:
        return _say("The service is still starting; try again in a moment.")
    env = {**_environment(), **(running or {}), "RME_VAR": str(var)}
    command = [sys.executable, str(ROOT / "manage.py"), "demo", "--json"]
    if running or "DATABASE_URL" in env:
        return subprocess.run(command, env=env, check=False).returncode
    return execute([*command, "--migrate"], var)


def web() -> int:
    """Replace this process by the web server."""
    env = _environment()
    if refusal := programs.refusal(env):
        return _say(refusal)
    key = Path(env.get("RME_VAR") or ROOT / "var") / "secret_key"
    if not {"SECRET_KEY", "SECRET_KEY_FILE", "SECRETS_DIR"} & env.keys() and not key.exists():
        return _say(
            "SECRET_KEY isn't set: generate one with `openssl rand -base64 48`, and set it for "
            "all processes of this deployment."
        )
    command = programs.web(env)
    return os.execve(command[0], command, env)  # no shell: it would keep the signals


def _say(sentence: str) -> int:
    say(f"rme: {sentence}")
    return 1


def main() -> int:
    try:
        return _main()
    except OSError as error:
        return _say(f"{reason(error)} RME_VAR names the data folder, which this user must own.")


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m rme.run", description=__doc__)
    parser.add_argument("--var", type=Path, default=None, help="the data folder")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="run the whole service")
    commands.add_parser("web", help="run only the web server")
    commands.add_parser("demo-json", help="print the demo as JSON")
    run = commands.add_parser("exec", help="run a command with the engines running")
    run.add_argument("argv", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    folder = options.var.resolve() if options.var else None
    var = folder or Path(os.environ.get("RME_VAR") or ROOT / "var").resolve()
    if options.command == "up":
        return up(var)
    if options.command == "web":
        return web()
    if options.command == "demo-json":
        return demo_json(var)
    argv = options.argv[1:] if options.argv[:1] == ["--"] else options.argv
    if not argv:
        run.error("a command is missing after --")
    return execute(argv, folder)


if __name__ == "__main__":
    sys.exit(main())
