"""The report of a run, and of the parts in which it was played."""

import subprocess

import pytest

from tests.simulation.world.report import Run, commit, merged


def _part(folder, first, version="a1b2c3d4e5f6"):
    path = folder / f"part-{first}-{version}.json"
    run = Run("make simulate", 10, 2, first, commit=version)
    run.seeds, run.checks, run.seconds = 10, 120, 5.0
    run.save(path)
    return path


def test_parts_of_one_commit_are_one_run(tmp_path):
    whole = merged([_part(tmp_path, 10), _part(tmp_path, 0)])
    assert (whole.first, whole.seeds, whole.checks, whole.parts) == (0, 20, 240, 2)
    assert "commit a1b2c3d4e5f6" in whole.lines()


def test_parts_of_two_commits_are_named_with_their_seeds(tmp_path):
    versions = ("a1b2c3d4e5f6", "a1b2c3d4e5f6", "f6e5d4c3b2a1")
    whole = merged([_part(tmp_path, 10 * place, each) for place, each in enumerate(versions)])
    assert "commit a1b2c3d4e5f6 (seeds 0 to 19), f6e5d4c3b2a1 (seeds 20 to 29)" in whole.lines()


def test_parts_sharing_a_seed_are_rejected(tmp_path):
    with pytest.raises(SystemExit, match="seed 5 is in two runs"):
        merged([_part(tmp_path, 0), _part(tmp_path, 5)])


def test_commit_is_read_from_git_or_unknown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert commit() == "unknown"
    subprocess.run(["git", "init", "-q"], check=True)
    named = ["git", "-c", "user.name=t", "-c", "user.email=t@t.example"]
    subprocess.run([*named, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    assert commit() == head.stdout[:12]
