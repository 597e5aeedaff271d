"""A process as compose.yaml starts it, without Docker: a read-only root, folders of its own where
compose has them, an unprivileged user without capabilities. It needs root for mount namespaces.
"""

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rme.run.places import UNPRIVILEGED, reachable, sockets
from tests.service import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
OWN = ("migrate", "web", "worker", "beat")
"""The services whose image is ours."""
ENGINES = "/mnt"
"""Where a container finds the sockets of the embedded engines: /tmp is its own."""


def can_be_made() -> bool:
    """Return whether this user may make mount namespaces, and others reach this environment."""
    if not reachable(Path(sys.prefix)):
        return False
    command = ["unshare", "--mount", "true"]
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


@dataclass(frozen=True)
class Container:
    """What containers of one deployment share."""

    app: Path
    """A copy of the files that the image has."""
    secrets: Path
    var: Path
    """The data folder of the engines."""
    state: Path
    """Takes the place of the tmpfs at RME_VAR: a health check sees what the service wrote."""
    metrics: Path
    """Takes the place of the volume that all containers share."""

    def command(self, name: str, arguments: list[str]) -> list[str]:
        """Return a command that runs arguments as the service of a name would."""
        service = SERVICES[name]
        assert service["read_only"] and service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        folders = [each.partition(":")[0] for each in service["tmpfs"]]
        assert folders == ["/tmp", "/var/lib/rme"]
        metrics = service["environment"]["METRICS_DIR"]
        assert f"metrics:{metrics}" in service["volumes"]
        words = [sys.executable if each == "python" else each for each in arguments]
        user = ["setpriv", f"--reuid={UNPRIVILEGED}", f"--regid={UNPRIVILEGED}", "--clear-groups"]
        user += ["--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]
        script = f"""
            set -e
            mount --make-rprivate /
            mkdir -p /var/lib/rme {metrics}
            mount --bind {sockets(self.var)} {ENGINES}
            mount --bind {self.state} /var/lib/rme
            mount --bind {self.metrics} {metrics}
            mount --bind {self.app} {self.app}
            {_reachable_python()}
            awk '{{print $5}}' /proc/self/mountinfo | while read -r place; do
              case "$place" in /proc*|/sys*|/dev*|/var/lib/rme|{metrics}) continue ;; esac
              mount -o remount,bind,ro "$place" 2>/dev/null || true
            done
            mount -t tmpfs -o size=64m,mode=1777 tmpfs /tmp
            cd {self.app}
            exec {shlex.join([*user, *words])}
        """
        return ["unshare", "--mount", "sh", "-c", script]

    def env(self, **more: str) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "RME_VAR": "/var/lib/rme",
            "METRICS_DIR": SERVICES["web"]["environment"]["METRICS_DIR"],
            "STATIC_ROOT": str(self.app / "static"),
            "SECRETS_DIR": str(self.secrets),
            "PYTHONDONTWRITEBYTECODE": "1",
            **more,
        }

    def run(self, name: str, arguments: list[str], **env: str) -> subprocess.CompletedProcess[str]:
        """Run arguments in a container of a service, as `docker compose exec` does."""
        return subprocess.run(
            self.command(name, arguments),
            env=self.env(**env),
            capture_output=True,
            text=True,
            check=False,
        )

    def start(self, name: str, log: Path, **env: str) -> subprocess.Popen[bytes]:
        """Start the command of a service."""
        with log.open("wb") as output:
            return subprocess.Popen(
                self.command(name, SERVICES[name]["command"]),
                env=self.env(**env),
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def is_healthy(self, name: str, **env: str) -> bool:
        """Return whether the health check of a service succeeds."""
        kind, *arguments = SERVICES[name]["healthcheck"]["test"]
        assert kind == "CMD"
        return self.run(name, arguments, **env).returncode == 0


def _reachable_python() -> str:
    """Return commands that let everybody reach a Python whose folder is below a closed one."""
    base = Path(sys.base_prefix)
    closed = [each for each in base.parents if not each.stat().st_mode & 0o001]
    if not closed:
        return ""
    top = closed[-1]
    return (
        f"mount --bind {base} /srv; mount -t tmpfs -o size=1m,mode=755 tmpfs {top}; "
        f"mkdir -p {base}; mount --bind /srv {base}"
    )


def image(folder: Path) -> Path:
    """Make a copy of what .dockerignore lets into the image, with the static files."""
    app = folder / "app"
    app.mkdir()
    lines = (ROOT / ".dockerignore").read_text().split()
    names = [line.removeprefix("!").rstrip("/") for line in lines if line.startswith("!")]
    subprocess.run(["cp", "-a", *names, str(app)], cwd=ROOT, check=True)
    env = {**os.environ, "RME_VAR": str(folder / "build"), "STATIC_ROOT": str(app / "static")}
    command = [sys.executable, "manage.py", "collectstatic", "--noinput", "--verbosity=0"]
    subprocess.run(command, cwd=app, env=env, check=True)
    return app
