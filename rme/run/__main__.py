"""`python -m rme.run`: `up` for the whole service, `exec` for a command beside the engines."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from rme.run.engines import EngineFailed, Postgres, Valkey
from rme.run.places import engine_env, postgres_data, sockets
from rme.run.supervisor import Supervisor, lock, port_is_free, programs, remember

ROOT = Path(__file__).resolve().parent.parent.parent


def up(var: Path) -> int:
    """Run the whole service until it is stopped; gives the exit code."""
    env = {**os.environ, "RME_VAR": str(var), "PYTHONUNBUFFERED": "1"}
    # simple-salesforce can name no other audience, and the demo is there to be tried with it.
    env.setdefault("JWT_AUDIENCES", "https://login.salesforce.com")
    host, port = env.setdefault("HOST", "127.0.0.1"), env.setdefault("PORT", "8000")
    if not port.isdigit() or not 0 < int(port) < 65536:
        return _say(f"PORT={port} is not a port number.")
    held = lock(var)
    if held is None:
        return _say("It is running already in this folder (another `make run`).")
    if not port_is_free(host, int(port)):
        other = int(port) + 1
        return _say(f"Port {port} is taken by another program; try PORT={other} make run.")
    remember(var, env)
    manage = [sys.executable, str(ROOT / "manage.py")]
    prepare = [[*manage, "migrate", "--verbosity", "0"], [*manage, "demo"]]
    try:
        return Supervisor(var, programs(env), env).up(prepare)
    finally:
        (var / "run" / "state.json").unlink(missing_ok=True)


def execute(command: list[str], var: Path | None) -> int:
    """Run a command beside engines (throw-away ones without `var`); gives its exit code."""
    given = {name for name in ("DATABASE_URL", "REDIS_URL") if os.environ.get(name)}
    folder = var or Path(tempfile.mkdtemp(prefix="rme-", dir="/var/tmp"))
    if var is None:
        folder.chmod(0o755)  # PostgreSQL's own user must get to its data below it
    folder.mkdir(parents=True, exist_ok=True)
    engines: list[Postgres | Valkey] = []
    if "DATABASE_URL" not in given:
        engines.append(Postgres(folder, ephemeral=var is None))
    if "REDIS_URL" not in given:
        engines.append(Valkey(folder))
    kept = {name: value for name, value in os.environ.items() if value}
    env = engine_env(folder) | kept | {"RME_VAR": str(folder)}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        for engine in engines:
            engine.start()
        return subprocess.run(command, env=env, check=False).returncode
    except EngineFailed as error:
        return _say(str(error))
    except KeyboardInterrupt:
        return 130
    finally:
        for engine in reversed(engines):
            engine.stop()
        if var is None:
            for path in (folder, sockets(folder), postgres_data(folder)):
                shutil.rmtree(path, ignore_errors=True)


def state(var: Path) -> dict[str, str]:
    """Give the environment of the service that runs in a data folder, if one does."""
    path = var / "run" / "state.json"
    if not path.exists():
        return {}
    found = json.loads(path.read_text())
    return {"PORT": found["port"]} | ({"BASE_URL": found["base_url"]} if found["base_url"] else {})


def demo_json(var: Path) -> int:
    """Print the demo's addresses and secrets as JSON, of the running service if one runs."""
    env = {**os.environ, **state(var), "RME_VAR": str(var)}
    command = [sys.executable, str(ROOT / "manage.py"), "demo", "--json"]
    if state(var) or "DATABASE_URL" in env:
        return subprocess.run(command, env=env, check=False).returncode
    migrate = [sys.executable, str(ROOT / "manage.py"), "migrate", "--verbosity", "0"]
    if execute(migrate, var):
        return 1
    return execute(command, var)


def _say(sentence: str) -> int:
    sys.stderr.write(f"rme: {sentence}\n")
    return 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m rme.run", description=__doc__)
    parser.add_argument("--var", type=Path, default=None, help="the data folder")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="run the whole service")
    commands.add_parser("demo-json", help="print the demo as JSON")
    run = commands.add_parser("exec", help="run a command beside the engines")
    run.add_argument("argv", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    given = options.var.resolve() if options.var else None
    var = given or Path(os.environ.get("RME_VAR", ROOT / "var")).resolve()
    if options.command == "up":
        return up(var)
    if options.command == "demo-json":
        return demo_json(var)
    argv = options.argv[1:] if options.argv[:1] == ["--"] else options.argv
    return execute(argv, given)


if __name__ == "__main__":
    sys.exit(main())
