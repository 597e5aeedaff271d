"""The scripts that are built: what is in the repository comes of its sources, and loads nothing."""

import json
import re
from hashlib import sha256

from tests.service import ROOT

ASSETS = ROOT / "assets"
BUILT = ROOT / "messaging" / "static" / "console"


def test_what_is_built_comes_of_the_sources_that_are_here():
    """After a change in assets/: `make assets`, and commit what it made."""
    digest = sha256()
    sources = sorted(f"studio/{path.name}" for path in (ASSETS / "studio").iterdir())
    for name in ("package-lock.json", "build.mjs", *sources):
        digest.update(f"{name}\0".encode() + (ASSETS / name).read_bytes())
    assert (BUILT / "studio.digest").read_text() == f"{digest.hexdigest()}\n"


def test_packages_are_locked_by_digest_and_name_no_host():
    lock = json.loads((ASSETS / "package-lock.json").read_text())["packages"]
    packages = {name: each for name, each in lock.items() if name}
    assert [name for name, each in packages.items() if "integrity" not in each] == []
    assert re.findall(r"https?://", json.dumps(packages)) == []


def test_the_licence_of_each_package_stands_beside_the_build():
    lock = json.loads((ASSETS / "package-lock.json").read_text())["packages"]
    names = [name.replace("node_modules/", "") for name in lock if name and "esbuild" not in name]
    licences = (BUILT / "studio.licences.txt").read_text()
    assert [
        name
        for name in names
        if f"{name} {lock[f'node_modules/{name}']['version']}" not in licences
    ] == []
