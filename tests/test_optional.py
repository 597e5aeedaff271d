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
from messaging.store.archived import archive
from rme.core.db.due import is_due
from rme.core.telemetry import tracing
app = rme.celery.app
app.loader.import_default_modules()
tracing.start()
if type(archive()).__module__ == "messaging.archive.reading":
    from messaging.archive import file_reader
try:
    page = reverse("cells")
except NoReverseMatch:
    page = ""
print(json.dumps({
    "modules": sorted(sys.modules),
    "archive": "messaging.archive" in app.tasks and "archive" in app.conf.beat_schedule,
    "placements": "tenants_placement" in is_due("t"),
    "task": "tenants.settle_pauses" in app.tasks and "settle-pauses" in app.conf.beat_schedule,
    "command": "move_organization" in get_commands(),
    "page": page,
    "links": settings.LINK_QUERY,
    "cookie": settings.SESSION_COOKIE_NAME,
}))
"""
CELL = {"CELL": "eu", "CELLS": "eu=http://eu,us=http://us", "CELL_SECRET": "s" * 32}
# redis-py imports the API and the metrics of opentelemetry wherever that is installed.
LIBRARIES = ("pyarrow", "obstore", "opentelemetry.exporter")
OPTIONAL = ("rme.cells", "messaging.archive", *LIBRARIES)
TRACER = "rme.core.telemetry.opentelemetry_tracer"
_PREFIXES = tuple(f"{package}." for package in OPTIONAL)


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
        name for name in process["modules"] if f"{name}.".startswith(_PREFIXES) or name == TRACER
    ]
    return process


def test_deployment_without_optional_parts_loads_none_of_them():
    assert started() == {
        "modules": [],
        "archive": False,
        "placements": False,
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
        "archive": False,
        "placements": True,
        "task": True,
        "command": True,
        "page": "/admin/account/cells/",
        "links": "?cell=eu",
        "cookie": "sessionid_eu",
    }
    assert {"rme.cells.owner", "rme.cells.people.pages", "rme.cells.tasks"} <= set(modules)
    assert {f"{name}.".startswith("rme.cells.") for name in modules} == {True}
    assert "rme.cells.router" not in modules


def test_archive_and_tracing_are_loaded_where_they_are_set(tmp_path):
    process = started(ARCHIVE_URL=tmp_path.as_uri(), TRACING="1")
    modules = set(process["modules"])
    assert process["archive"]
    assert {"messaging.archive.file_reader", "pyarrow.parquet", TRACER} <= modules
    assert "opentelemetry.exporter.otlp.proto.http.trace_exporter" in modules
    assert "rme.cells.apps" not in modules


def naming(pattern, package=""):
    """Return the modules outside a package whose text has a pattern."""
    paths = [path.relative_to(ROOT) for app in APPS for path in (ROOT / app).rglob("*.py")]
    return {
        path.as_posix()
        for path in paths
        if "migrations" not in path.parts
        if not (package and path.as_posix().startswith(package))
        if re.search(pattern, (ROOT / path).read_text())
    }


def test_few_modules_ask_who_serves_an_organization():
    """The others ask `rme.tenants.organizations`, and statements use `rme.core.db.due`."""
    assert naming(r"\bplacement\b", "rme/cells/") == {
        "rme/core/db/due.py",
        "rme/fixed_settings.py",
        "rme/tenants/organizations/serving.py",
        "messaging/store/accepted.py",
        "messaging/store/due_organizations.py",
        "messaging/store/feedback/callbacks.py",
    }


def test_only_settings_and_urls_name_the_package_of_cells():
    """`rme.router` is the program that a deployment starts."""
    modules = {"rme/settings.py", "rme/urls.py", "rme/router.py"}
    assert naming(r"\brme\.cells\b", "rme/cells/") == modules


def test_few_modules_name_the_package_of_the_archive():
    """The others read archived messages by `messaging.store.archived`."""
    assert naming(r"\bmessaging\.archive\b", "messaging/archive/") == {
        "messaging/store/archived.py",
        "rme/celery.py",
        "rme/fixed_settings.py",
        "rme/management/commands/archive.py",
    }


def test_one_module_names_the_library_of_tracing():
    assert naming(r"import opentelemetry\b|from opentelemetry\b") == {
        f"{TRACER.replace('.', '/')}.py"
    }
    assert naming(r"\bopentelemetry_tracer\b") == {"rme/core/telemetry/tracing.py"}
