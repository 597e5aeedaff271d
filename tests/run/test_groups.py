"""What tests of one group rely on: that pytest-xdist gives them to one worker, one by one."""

import subprocess
import sys
from pathlib import Path

_TESTS = """
import os, pathlib, pytest

@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("number", range(8))
def test_it(number):
    pathlib.Path(f"{number}.txt").write_text(os.environ["PYTEST_XDIST_WORKER"])
"""


def test_tests_of_a_group_run_in_one_worker(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(_TESTS)
    options = ["-n", "2", "--dist", "loadgroup", "-p", "no:django", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *options, "--rootdir", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    workers = [path.read_text() for path in tmp_path.glob("*.txt")]
    assert len(workers) == 8
    assert len(set(workers)) == 1
