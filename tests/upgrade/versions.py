"""The trees of the version before and of this one, and their processes."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGTERM

import psutil
import requests
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader

from tests.migrating.rules import unreleased
from tests.service import ROOT, free_port

STAGED_TABLE, STAGED_COLUMN = "messaging_delivery", "staged"
_STAGED = """
from django.db import migrations


class Migration(migrations.Migration):
    post_deploy = {post_deploy}
    dependencies = [("messaging", name) for name in {after}]
    operations = [migrations.RunSQL("ALTER TABLE {table} {change}")]
"""
READY_SECONDS = STOP_SECONDS = 120
_COMMANDS = """
import json, os, rme
from rme.run import programs
assert rme.__file__.startswith(os.getcwd() + os.sep), rme.__file__
print(json.dumps({each.name: list(each.command) for each in programs.programs(os.environ)}))
"""


class NoHistory(Exception):
    """The checkout has no version before."""


def former_commit() -> str:
    """Return the version before: UPGRADE_FROM, or the last tag, or the last one whose migrations
    are those of the release before (`RELEASED`).

    Raise `NoHistory` if the checkout has none of them.
    """
    if given := os.environ.get("UPGRADE_FROM"):
        return _git("rev-parse", "--verify", f"{given}^{{commit}}")
    try:
        return _git("rev-list", "-1", _git("describe", "--tags", "--abbrev=0", "HEAD^"))
    except NoHistory:
        files = [each.__module__.replace(".", "/") + ".py" for each in _new_migrations()]
        if not files:
            return _git("rev-parse", "--verify", "HEAD^")
        added = _git("log", "--format=%H", "--diff-filter=A", "--", *files)
        return _git("rev-parse", "--verify", f"{added.splitlines()[-1]}^")


def _new_migrations() -> list[Migration]:
    return unreleased(MigrationLoader(None))


def described(commit: str) -> str:
    """Return a commit as the report names it."""
    return _git("log", "-1", "--format=%h (%cs)", commit)


def extract(commit: str, folder: Path) -> Path:
    """Write the tree of a commit to a folder."""
    return _unpack(["git", "archive", commit], folder)


def copy_with_staged_column(folder: Path) -> Path:
    """Copy this tree to a folder, with a migration that adds a column and one, post-deploy, that
    removes it.
    """
    listed = subprocess.check_output(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT
    )
    names = [each for each in listed.decode().split("\0") if (ROOT / each).is_file()]
    _unpack(["tar", "-c", "--", *names], folder)
    loader = MigrationLoader(None)
    [leaf] = loader.graph.leaf_nodes("messaging")
    before_deploy = [
        name
        for app, name in loader.graph.forwards_plan(leaf)
        if app == "messaging" and not getattr(loader.graph.nodes[app, name], "post_deploy", False)
    ]
    # The first must not wait for this release's own post-deploy migrations.
    for name, after, post_deploy, change in (
        ("9998_staged", before_deploy[-1:], False, f"ADD COLUMN {STAGED_COLUMN} integer"),
        ("9999_staged", ["9998_staged", leaf[1]], True, f"DROP COLUMN {STAGED_COLUMN}"),
    ):
        text = _STAGED.format(
            after=after, post_deploy=post_deploy, table=STAGED_TABLE, change=change
        )
        (folder / "messaging" / "migrations" / f"{name}.py").write_text(text)
    return folder


def _unpack(command: list[str], folder: Path) -> Path:
    """Write the archive that a command prints to a new folder."""
    folder.mkdir()
    archive = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", str(folder)], stdin=archive.stdout, check=True)
    assert archive.wait() == 0
    return folder


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode or not done.stdout.strip():
        raise NoHistory(done.stderr.strip() or f"git {' '.join(arguments)} finds nothing")
    return done.stdout.strip()


@dataclass
class Version:
    """A version of the service: its tree, and those of its processes that run."""

    name: str
    tree: Path
    env: dict[str, str]
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    port: int = 0
    is_up: bool = False
    """Whether callers may be sent to its web: a proxy asks `/readyz`, and drains before a stop."""

    def manage(self, *arguments: str) -> str:
        """Run `manage.py`; return what it prints."""
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(
            command, cwd=self.tree, env=self.env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, program: str) -> None:
        """Start `web` or `worker`; return once it is ready."""
        if program in self.running:
            return
        self.port = free_port() if program == "web" else self.port
        env = {**self.env, "PORT": str(self.port), "PYTHONUNBUFFERED": "1"}
        found = [sys.executable, "-c", _COMMANDS]
        commands = json.loads(subprocess.check_output(found, cwd=self.tree, env=env))
        log = (Path(self.env["RME_VAR"]) / f"{self.name}-{program}.log").open("ab")
        self.running[program] = subprocess.Popen(
            commands[program], cwd=self.tree, env=env, stdout=log, stderr=log
        )
        if program == "web":
            self._wait_until_ready()
            self.is_up = True

    def stop(self, program: str) -> None:
        """Stop a program as a deployment does, if it runs."""
        if (process := self.running.get(program)) is None:
            return
        if program == "web":
            self.is_up = False
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(SIGTERM)
        process.wait(STOP_SECONDS)
        _, left = psutil.wait_procs(children, 5)
        assert not left, left
        del self.running[program]

    def kill(self) -> None:
        """End what is left when a test has failed."""
        for process in self.running.values():
            for each in [*psutil.Process(process.pid).children(recursive=True), process]:
                each.kill()
            process.wait()

    def _wait_until_ready(self) -> None:
        until = time.monotonic() + READY_SECONDS
        while time.monotonic() < until:
            try:
                answer = requests.get(f"http://127.0.0.1:{self.port}/readyz", timeout=10)
            except requests.ConnectionError:
                time.sleep(0.2)
                continue
            if answer.status_code == 200:
                return
            time.sleep(0.2)
        raise AssertionError(f"the web of {self.name} is not ready")
