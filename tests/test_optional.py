"""Cells, archive and tracing are loaded only where a deployment has them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
APPS = ("rme", "messaging", "push", "bot")
PROGRAM = """
import json, sys
import django
django.setup()
import rme.asgi, rme.celery, rme.metrics, rme.urls
from django.conf import settings
from django.core.management import get_commands
from django.urls import NoReverseMatch, reverse
from messaging.archive import reading
from rme.core.telemetry import tracing
app = rme.celery.app
app.loader.import_default_modules()
tracing.start()
if reading.is_on():
    from messaging.archive import file_reader
try:
    page = reverse("cells")
except NoReverseMatch:
    page = ""
print(json.dumps({
    "modules": sorted(sys.modules),
    "task": "tenants.settle_pauses" in app.tasks and "settle-pauses" in app.conf.beat_schedule,
    "command": "move_organization" in get_commands(),
    "page": page,
    "links": settings.LINK_QUERY,
    "cookie": settings.SESSION_COOKIE_NAME,
}))
"""
CELL = {"CELL": "eu", "CELLS": "eu=http://eu,us=http://us", "CELL_SECRET": "s" * 32}
OPTIONAL = ("rme.cells.", "messaging.archive.file_reader", "pyarrow.", "obstore.")
TRACER = ("rme.core.telemetry.opentelemetry_tracer", "opentelemetry.sdk.trace")


def started(**env):
    """Return what a process has once all that web processes and workers import is imported."""
    inherited = {name: os.environ[name] for name in ("PATH", "DATABASE_URL", "REDIS_URL")}
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={**inherited, "DJANGO_SETTINGS_MODULE": "rme.settings", **env},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    process = json.loads(answer.stdout.splitlines()[-1])
    process["modules"] = [
        name for name in process["modules"] if name.startswith((*OPTIONAL, *TRACER))
    ]
    return process


def test_deployment_without_optional_parts_loads_none_of_them():
    assert started() == {
        "modules": [],
        "task": False,
        "command": False,
        "page": "",
        "links": "",
        "cookie": "sessionid",
    }


def test_a_cell_loads_the_modules_of_cells_but_the_router():
    process = started(**CELL)
    modules = process.pop("modules")
    assert process == {
        "task": True,
        "command": True,
        "page": "/admin/account/cells/",
        "links": "?cell=eu",
        "cookie": "sessionid_eu",
    }
    assert {"rme.cells.owner", "rme.cells.people.pages", "rme.cells.tasks"} <= set(modules)
    assert {name.startswith("rme.cells.") for name in modules} == {True}
    assert "rme.cells.router" not in modules


def test_archive_and_tracing_are_loaded_where_they_are_set(tmp_path):
    modules = started(ARCHIVE_URL=tmp_path.as_uri(), TRACING="1")["modules"]
    assert {"messaging.archive.file_reader", "pyarrow.parquet", TRACER[0]} <= set(modules)
    assert "rme.cells.apps" not in modules


def test_few_modules_ask_who_serves_an_organization():
    """The others ask `rme.tenants.organizations`, and statements use `rme.core.db.due`."""
    paths = [path for app in APPS for path in (ROOT / app).rglob("*.py")]
    asking = {
        name
        for path in paths
        if not (name := path.relative_to(ROOT).as_posix()).startswith("rme/cells/")
        and re.search(r"\bplacement\b", path.read_text())
        and "migrations" not in path.parts
    }
    assert asking == {
        "rme/core/db/due.py",
        "rme/fixed_settings.py",
        "rme/tenants/organizations/serving.py",
        "messaging/store/accepted.py",
        "messaging/store/due_organizations.py",
        "messaging/store/feedback/callbacks.py",
    }


def test_only_settings_and_urls_name_the_package_of_cells():
    """`rme.router` is the program that a deployment starts."""
    paths = [path for app in APPS for path in (ROOT / app).rglob("*.py")]
    naming = {
        name
        for path in paths
        if not (name := path.relative_to(ROOT).as_posix()).startswith("rme/cells/")
        and "rme.cells" in path.read_text()
    }
    assert naming == {"rme/settings.py", "rme/urls.py", "rme/router.py"}
