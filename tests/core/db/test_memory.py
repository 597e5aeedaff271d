"""A process that has no memory for a connection to PostgreSQL."""

import os
import subprocess
import sys

import pytest

from tests.service import ROOT

CONNECT = """
import resource, sys
from pathlib import Path
import django; django.setup()
from django.db import OperationalError, connection

size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
room = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (size + room, size + room))
try:
    connection.ensure_connection()
except OperationalError:
    print("away")
"""


@pytest.mark.parametrize(
    ("megabytes", "code"), [(4, os.EX_SOFTWARE), (512, os.EX_OK)], ids=["no room", "room"]
)
def test_process_without_memory_for_a_connection_ends(megabytes, code):
    env = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "rme.settings",
        "DATABASE_URL": "postgresql://rme@127.0.0.1:1/rme",
    }
    done = subprocess.run(
        [sys.executable, "-c", CONNECT, str(megabytes * 2**20)],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    output = done.stdout + done.stderr
    assert done.returncode == code, output
    assert ("a connection had no memory" in output) == (code != os.EX_OK)
    assert ("away" in done.stdout) == (code == os.EX_OK)
