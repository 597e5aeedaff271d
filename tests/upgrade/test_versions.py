"""The version before is the release before, whose migrations `RELEASED` names."""

import pytest

from tests.migrating.rules import RELEASED
from tests.upgrade import versions


def test_the_version_before_has_the_migrations_of_the_release_before(tmp_path, monkeypatch):
    monkeypatch.delenv("UPGRADE_FROM", raising=False)
    try:
        tree = versions.extract(versions.former_commit(), tmp_path / "before")
    except versions.NoHistory as reason:
        pytest.skip(f"There is no version before: {reason}")
    found = {
        folder.parent.name: max(each.stem for each in folder.glob("0*.py"))
        for folder in tree.glob("**/migrations")
        if folder.parent.name in RELEASED and "tests" not in folder.parts[len(tree.parts) :]
    }
    assert found == RELEASED


def test_this_version_is_copied_with_a_column_to_be_removed(tmp_path):
    tree = versions.copy_with_staged_column(tmp_path / "this")
    added, removed = sorted((tree / "messaging" / "migrations").glob("999*.py"))
    assert "post_deploy = False" in added.read_text()
    assert "post_deploy = True" in removed.read_text()
    assert (tree / "manage.py").exists()
