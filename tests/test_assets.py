"""The scripts that are built: what is in the repository comes of its sources, and loads nothing."""

import json
import re
from hashlib import sha256

from tests.service import ROOT

ASSETS = ROOT / "assets"
BUILT = ROOT / "messaging" / "static" / "console"


def test_built_scripts_match_their_sources():
    """After a change in assets/: `make assets`, and commit what it made."""
    digest = sha256()
    sources = sorted(
        f"{folder}/{path.name}"
        for folder in ("alpine", "studio")
        for path in (ASSETS / folder).iterdir()
    )
    for name in ("package-lock.json", "build.mjs", *sources):
        digest.update(f"{name}\0".encode() + (ASSETS / name).read_bytes())
    assert (BUILT / "studio.digest").read_text() == f"{digest.hexdigest()}\n"


def test_packages_are_locked_by_digest_and_name_no_host():
    lock = json.loads((ASSETS / "package-lock.json").read_text())["packages"]
    packages = {name: each for name, each in lock.items() if name}
    assert [name for name, each in packages.items() if "integrity" not in each] == []
    assert re.findall(r"https?://", json.dumps(packages)) == []


def test_licence_of_each_built_package_is_included():
    lock = json.loads((ASSETS / "package-lock.json").read_text())["packages"]
    names = [name.replace("node_modules/", "") for name in lock if name and "esbuild" not in name]
    licences = (BUILT / "studio.licences.txt").read_text()
    assert [
        name
        for name in names
        if f"{name} {lock[f'node_modules/{name}']['version']}" not in licences
    ] == []
