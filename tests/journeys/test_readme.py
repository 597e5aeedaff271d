"""The README is true: its commands exist, its links lead somewhere."""

import re
import subprocess

import pytest

from tests.service import ROOT

README = (ROOT / "README.md").read_text()
COMMANDS = sorted(set(re.findall(r"(?:`|^|\()make (?:-s )?([a-z-]+)", README, re.MULTILINE)))


@pytest.mark.parametrize("target", COMMANDS)
def test_every_make_target_exists(target):
    done = subprocess.run(
        ["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_every_link_target_exists(path):
    assert (ROOT / path).exists()


def test_every_folder_named_exists():
    folders = re.findall(r"^\| `([a-z/]+)` \|", README, re.MULTILINE)
    assert folders
    assert [folder for folder in folders if not (ROOT / folder).is_dir()] == []
