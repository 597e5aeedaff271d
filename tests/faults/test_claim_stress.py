"""The stress of `claim_stress.py`, on the embedded PostgreSQL and on 15: no crash, nothing lost."""

import os
import subprocess
import sys

import pytest

from tests.messaging.delivery.test_postgresql_15 import BINARIES, server
from tests.service import ROOT, data_folder, own_engines

pytestmark = pytest.mark.long

__all__ = ["server"]

STRESS = "manage.py migrate --verbosity 0 && {0} -m tests.faults.claim_stress"


def played(env: dict[str, str], *prefix: str) -> None:
    command = [*prefix, "sh", "-c", f"{sys.executable} {STRESS.format(sys.executable)}"]
    settings = {"DJANGO_SETTINGS_MODULE": "rme.settings"}
    assert subprocess.run(command, cwd=ROOT, env=env | settings, check=False).returncode == 0


def test_no_crash_on_the_embedded_postgresql():
    with data_folder() as folder:
        played(own_engines(), sys.executable, "-m", "rme.run", "--var", str(folder), "exec", "--")


@pytest.mark.skipif(not (BINARIES / "postgres").exists(), reason="PostgreSQL 15 is not installed")
def test_no_crash_on_postgresql_15(server):
    played(os.environ | {"DATABASE_URL": server})
