"""The lock files hold everything that the project depends on."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.service import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
LOCKS = {
    "requirements.lock": [],
    "requirements-archive.lock": EXTRAS["archive"],
    "requirements-tracing.lock": EXTRAS["tracing"],
    "requirements-dev.lock": [
        *EXTRAS["archive"],
        *EXTRAS["tracing"],
        *PROJECT["dependency-groups"]["dev"],
    ],
}
"""By lock file: what it has to hold beside what the service needs."""


def locked(name):
    """Return each package of a lock file, with the Pythons it is for, and its version."""
    text = (ROOT / name).read_text()
    found = re.findall(r"^([\w.-]+)==(\S+)(?: ; (.+))? \\$", text, re.MULTILINE)
    return {(package, pythons): version for package, version, pythons in found}


@pytest.mark.parametrize("name", LOCKS)
def test_each_dependency_is_locked_in_an_allowed_version(name):
    versions = {}
    for (package, _), version in locked(name).items():
        versions.setdefault(package, []).append(version)
    asked = map(Requirement, [*PROJECT["project"]["dependencies"], *LOCKS[name]])
    wrong = [
        str(each)
        for each in asked
        if not any(map(each.specifier.contains, versions.get(canonicalize_name(each.name), [])))
    ]
    assert wrong == []


def test_package_in_several_locks_has_one_version():
    service = locked("requirements.lock")
    for name in LOCKS:
        others = locked(name)
        assert {each: others.get(each) for each in service} == service, name
