"""Each statement of the store says which plan it counts on, and which function runs it."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from tests.test_sql_text import ROOT, STATEMENT

STORE = ROOT / "messaging" / "store"
PLAN = re.compile(r"# Plan(?: \((\w+)\))?: ")
RUN_BY = "# Run by: "


@dataclass(frozen=True)
class Module:
    """A module of the store."""

    path: Path
    lines: list[str]
    tree: ast.Module

    @property
    def functions(self) -> dict[str, ast.AST]:
        """Return its functions by name."""
        nodes = ast.walk(self.tree)
        return {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}

    def comment_above(self, line: int) -> list[str]:
        """Return the comment that ends right above a line."""
        comment: list[str] = []
        while self.lines[line - 2 - len(comment)].startswith("#"):
            comment.insert(0, self.lines[line - 2 - len(comment)])
        return comment


@dataclass(frozen=True)
class Statement:
    """A constant that is a statement, or has several by name."""

    module: Module
    name: str
    line: int
    texts: list[str]

    def __str__(self) -> str:
        return f"{self.module.path.relative_to(ROOT)}: {self.name}"

    @property
    def run_by(self) -> tuple[list[str], list[str]]:
        """Return the functions that run it, and who calls them: modules or functions beside it."""
        last = self.module.comment_above(self.line)[-1]
        functions, _, callers = last.removeprefix(RUN_BY).partition(", for ")
        return functions.split(" and "), callers.split(" and ") if callers else []


def modules() -> Iterator[Module]:
    for path in sorted(STORE.rglob("*.py")):
        text = path.read_text()
        yield Module(path, text.splitlines(), ast.parse(text))


def statements() -> Iterator[Statement]:
    """Yield the store's statements, and the private constants that are parts of statements."""
    for module in modules():
        name_of_module = ".".join(module.path.relative_to(ROOT).with_suffix("").parts)
        values = vars(import_module(name_of_module.removesuffix(".__init__")))
        for node in module.tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                value = values[name]
                texts = list(value.values()) if isinstance(value, dict) else [value]
                if all(isinstance(text, str) and STATEMENT.match(text) for text in texts):
                    yield Statement(module, name, node.lineno, texts)


def is_part(statement: Statement) -> bool:
    return statement.name.startswith("_")


def public_statements() -> list[Statement]:
    return [statement for statement in statements() if not is_part(statement)]


def names_in(node: ast.AST) -> set[str]:
    """Return the names that a piece of code mentions: variables, attributes and imports."""
    names: set[str] = set()
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                names.add(name)
    return names


def test_each_statement_states_its_plan_and_its_reader():
    without = [
        str(statement)
        for statement in public_statements()
        if not (comment := statement.module.comment_above(statement.line))
        or not comment[-1].startswith(RUN_BY)
        or not any(map(PLAN.match, comment))
    ]
    assert not without
    assert len(public_statements()) > 80


def test_each_statement_is_run_by_the_functions_that_it_names():
    wrong = [
        f"{statement}: {name}"
        for statement in public_statements()
        for name in statement.run_by[0]
        if name not in statement.module.functions
        or statement.name not in names_in(statement.module.functions[name])
    ]
    assert not wrong


def test_settings_of_statements_are_those_of_the_functions_that_run_them():
    """`read_in_order` sets BY_INDEX where its caller names nothing else."""
    wrong, count = [], 0
    for statement in public_statements():
        comment = statement.module.comment_above(statement.line)
        (setting,) = (plan[1] for plan in map(PLAN.match, comment) if plan)
        for name in statement.run_by[0] if setting else ():
            names = names_in(statement.module.functions[name])
            count += 1
            if setting not in names and not (setting == "BY_INDEX" and "read_in_order" in names):
                wrong.append(f"{statement}: {name}")
    assert not wrong
    assert count > 20


def test_callers_of_statements_call_the_functions_that_run_them():
    wrong = [
        f"{statement}: {caller}"
        for statement in public_statements()
        for caller in statement.run_by[1]
        if not set(statement.run_by[0]) & names_in(caller_code(statement.module, caller))
    ]
    assert not wrong
    assert sum(len(statement.run_by[1]) for statement in public_statements()) > 80


def caller_code(module: Module, caller: str) -> ast.AST:
    """Return the code of a function of the same module, or of a module below `messaging`."""
    if caller in module.functions:
        return module.functions[caller]
    path = ROOT / "messaging" / Path(*caller.split("."))
    return ast.parse(path.with_suffix(".py").read_text())


def test_parts_of_statements_are_not_run():
    """A private text is a part. A whole statement has a public name."""
    run = [
        str(statement)
        for statement in statements()
        if is_part(statement)
        for call in ast.walk(statement.module.tree)
        if isinstance(call, ast.Call)
        and any(isinstance(a, ast.Name) and a.id == statement.name for a in call.args)
    ]
    assert not run


def test_parameters_of_statements_are_named():
    assert not [str(s) for s in statements() if any("%s" in text for text in s.texts)]
