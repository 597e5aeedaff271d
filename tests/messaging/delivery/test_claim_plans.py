"""What claims and the sweep read, on an engine of their own: see `claim_plans.py`.

Plans depend on what an engine remembers: statistics, pages that VACUUM could not give back, and
transactions of others that keep it from that. Each scene makes the state that it is about, so no
other test may have left one behind.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.service import ROOT, own_engines

SCENES = "tests/messaging/delivery/claim_plans.py"


@pytest.mark.parametrize("scenes", ["empty", "not empty"])
def test_reads_do_not_depend_on_statistics(scenes):
    with tempfile.TemporaryDirectory(prefix="rme-plans-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)  # the engine runs as another user
        engines = [sys.executable, "-m", "rme.run", "--var", folder, "exec", "--"]
        done = subprocess.run(
            [*engines, sys.executable, "-m", "pytest", "-p", "no:xdist", "-k", scenes, SCENES],
            cwd=ROOT,
            env=own_engines(),
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-5000:]
    assert " skipped" not in done.stdout
