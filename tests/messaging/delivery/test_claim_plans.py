"""What claims and the sweep read, on an engine of their own: see `claim_plans.py`.

Plans depend on what an engine remembers: statistics, pages that VACUUM could not give back, and
transactions of others that keep it from that. Each scene makes the state that it is about, so no
other test may have left one behind.
"""

import subprocess
import sys

import pytest

from tests.databases import TEMPLATE_VARIABLE
from tests.service import ROOT, data_folder, own_engines

pytestmark = pytest.mark.system
SCENES = "tests/messaging/delivery/claim_plans.py"


@pytest.mark.parametrize("scenes", ["empty", "not empty"])
def test_reads_do_not_depend_on_statistics(scenes):
    with data_folder() as folder:
        engines = [sys.executable, "-m", "rme.run", "--var", str(folder), "exec", "--"]
        done = subprocess.run(
            [*engines, sys.executable, "-m", "pytest", "-p", "no:xdist", "-k", scenes, SCENES],
            cwd=ROOT,
            env=own_engines() | {TEMPLATE_VARIABLE: "rme"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-5000:]
    assert " skipped" not in done.stdout
