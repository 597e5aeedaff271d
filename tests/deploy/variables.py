"""The variables of the environment, as the code that reads them names them."""

import ast

from tests.service import ROOT

READERS = (
    "rme/settings.py",
    "rme/cells/environment.py",
    "rme/run/programs.py",
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "rme/core/environment").glob("*.py"))),
)
TABLE = "rme/core/environment/archive_settings.py"
"""Has variables as the keys of a table; dicts of the others are Django's."""
FUNCTIONS = {"_base_url", "_flag", "_integer", "_number", "_numbers", "_words"}
MAPPINGS = {"ENV", "env"}


def read_by_the_service() -> set[str]:
    """Return the names of all variables that the settings and the programs read, but for those of
    files: all secrets have one.
    """
    found: set[str] = set()
    for reader in READERS:
        for node in ast.walk(ast.parse((ROOT / reader).read_text())):
            found |= _name(node)
            if reader == TABLE:
                found |= _keys(node)
    return {name for name in found if not name.endswith("_FILE")}


def _name(node: ast.AST) -> set[str]:
    """Return the variable that `ENV["X"]`, `ENV.get("X")`, `_flag("X")` and its like, or
    `secret(env, "X")` reads.
    """
    match node:
        case ast.Subscript(value=ast.Name(id=mapping), slice=ast.Constant(value=str(name))):
            return {name} if mapping in MAPPINGS else set()
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=mapping), attr="get"),
            args=[ast.Constant(value=str(name)), *_],
        ):
            return {name} if mapping in MAPPINGS else set()
        case ast.Call(
            func=ast.Attribute(value=ast.Call(func=ast.Name(id="Values"))),
            args=[ast.Constant(value=str(name)), *_],
        ):
            return {name}
        case ast.Call(func=ast.Name(id="secret"), args=[_, ast.Constant(value=str(name))]):
            return {name}
        case ast.Call(func=ast.Name(id=function), args=[ast.Constant(value=str(name)), *_]):
            return {name} if function in FUNCTIONS else set()
        case _:
            return set()


def _keys(node: ast.AST) -> set[str]:
    """Return the variables that a table names as its keys."""
    keys = node.keys if isinstance(node, ast.Dict) else []
    names = [key.value for key in keys if isinstance(key, ast.Constant)]
    return {name for name in names if isinstance(name, str) and name.isupper()}
