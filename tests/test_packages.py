"""Packages have a face: others import what `__init__` exports, or names in its docstring."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("packages")  # one worker reads all modules

ROOT = Path(__file__).resolve().parent.parent
APPS = ("rme", "messaging", "push", "bot")
FOUNDATION = ("rme.core",)  # everything there is for everyone; its own packages have no secrets


def _modules() -> dict[str, Path]:
    """Return all modules by dotted name; a package is named like its `__init__`."""
    modules = {}
    for app in APPS:
        for path in sorted((ROOT / app).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if "migrations" not in parts:
                modules[".".join(parts).removesuffix(".__init__")] = path
    return modules


MODULES = _modules()
PACKAGES = {name for name, path in MODULES.items() if path.name == "__init__.py"}
WITH_FACE = sorted(
    package
    for package in PACKAGES
    if "." in package and not package.startswith((*FOUNDATION, "rme.management"))
)


@cache
def _imports(path: Path) -> frozenset[str]:
    """Return what a module imports of ours, by dotted name; imports in functions included."""
    return frozenset(_each_import(path))


def _each_import(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in MODULES else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)


@cache
def _face(package: str) -> str:
    return ast.get_docstring(ast.parse(MODULES[package].read_text())) or ""


@pytest.mark.parametrize("package", WITH_FACE)
def test_others_import_only_names_of_the_package_docstring(package):
    inside = f"{package}."
    used = {
        name.removeprefix(inside).partition(".")[0]
        for module, path in MODULES.items()
        if not f"{module}.".startswith(inside)
        for name in _imports(path)
        if name.startswith(inside)
    }
    assert {name for name in used if f"`{name}`" not in _face(package)} == set()


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _identifiers(package: str) -> Iterator[str]:
    """Yield the identifiers in the source of a package."""
    for name, path in MODULES.items():
        if f"{name}.".startswith(f"{package}."):
            for node in ast.walk(ast.parse(path.read_text())):
                for field in ("id", "attr", "name", "arg", "module"):
                    if isinstance(value := getattr(node, field, None), str):
                        yield from value.split(".")


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_package_docstring_names_existing_modules(package):
    """What stands in backticks is a module, inside or beside it, a command, or an identifier."""
    named = set(re.findall(r"`([a-z_]+)(?:\.py)?`", _face(package)))
    parent = package.rpartition(".")[0]
    modules = {
        _last(name)
        for name in MODULES
        if name.startswith(f"{package}.")
        or name.rpartition(".")[0] == parent
        or ".management.commands." in name
    }
    if unknown := named - modules:
        assert unknown - set(_identifiers(package)) == set()


def test_the_layers_name_each_module_of_the_service():
    """So no app imports one that stands above the apps, unnoticed."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = contracts["contracts"][0]["layers"]
    named = {name for layer in layers for name in layer.split(" | ")}
    modules = {".".join(name.split(".")[:2]) for name in MODULES if name.startswith("rme.")}
    assert named - {"bot", "messaging", "push"} == modules - {"rme.formats"}  # Django's, by locale


@pytest.mark.parametrize(
    ("table", "contract"),
    [
        ("The service", "Apps stand on each other in one direction"),
        ("Messaging", "A message takes one way down"),
        ("Tenants", "The subjects of tenants stand on each other in one direction"),
    ],
)
def test_map_of_the_architecture_has_the_layers_of_the_import_contract(table, contract):
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (c["layers"] for c in contracts["contracts"] if c["name"] == contract)
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = page.partition(f"\n**{table}**\n\n")[2].partition("\n\n")[0].splitlines()[2:]
    names = [set(re.findall(r"`([\w.]+)`", row.split("|")[1])) for row in rows]
    assert names == [set(layer.split(" | ")) for layer in layers]


def test_many_modules_are_private_to_their_package():
    """The rule above compares something: most packages have modules that nobody else imports."""
    hidden = [
        module
        for module in MODULES
        if module.rpartition(".")[0] in WITH_FACE
        and f"`{module.rpartition('.')[2]}`" not in _face(module.rpartition(".")[0])
    ]
    assert len(hidden) > 100
