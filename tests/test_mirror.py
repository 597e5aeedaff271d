"""Tests mirror the source: the path of a folder of tests is that of a package."""

from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
OF_NO_PACKAGE = {
    "bot/platforms": "bots on each platform, and on broken ones",
    "browser": "pages in real browsers",
    "combinations": "faults on each combination of servers",
    "drills": "losing a database, moving an organization",
    "fakes": "providers at the far end of a wire",
    "faults": "killed processes and engines",
    "journeys": "whole stories",
    "messaging/contract": "rules of the API that no single module keeps",
    "migrating": "a database of the release before",
    "simulation": "histories from seeds",
    "sms": "a real gateway and SMSC",
    "upgrade": "two versions side by side",
    "words": "the words of all pages, marked for translation",
}
"""Folders of tests that are about no package, and what each is about."""


def _folders() -> set[str]:
    return {
        path.parent.relative_to(TESTS).as_posix()
        for path in TESTS.rglob("*.py")
        if path.parent != TESTS
    }


def _has_package(folder: str) -> bool:
    return any((ROOT / top / folder).is_dir() for top in ("", "rme"))


def _is_listed(folder: str) -> bool:
    return any(folder == each or folder.startswith(f"{each}/") for each in OF_NO_PACKAGE)


def test_each_folder_of_tests_has_a_package():
    assert {each for each in _folders() if not _has_package(each) and not _is_listed(each)} == set()


def test_each_listed_folder_exists_and_has_no_package():
    assert [each for each in OF_NO_PACKAGE if each not in _folders() or _has_package(each)] == []
