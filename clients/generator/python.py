"""The Python client's types and methods."""

import json
import keyword
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator

from clients.generator.description import (
    NOTE,
    Language,
    Operation,
    Schema,
    one_line,
    operations_of,
    schemas_of,
    type_of,
)

PYTHON = Language(
    {"string": "str", "integer": "int", "number": "float", "boolean": "bool"},
    "None",
    "None",
    "Any",
    lambda values: f"Literal[{', '.join(values)}]",
    lambda item: f"list[{item}]",
    lambda item: f"dict[str, {item}]",
)


def formatted(lines: Iterable[str]) -> str:
    """Return Python code in the form of the project."""
    text = "\n".join(lines)
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "clients/x.py", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return done.stdout


def types(document: Schema) -> str:
    """Return the schemas as typed dictionaries."""
    return formatted(_types(document))


def operations(document: Schema, *, coroutines: bool) -> str:
    """Return a class with a method, or a coroutine, for each operation."""
    return formatted(_operations(document, coroutine=coroutines))


def _types(document: Schema) -> Iterator[str]:
    yield f'"""The bodies and answers of the API.\n\n{NOTE}\n"""\n'
    yield "from typing import Any, Literal, NotRequired, TypedDict\n"
    unions = []
    for name, schema in schemas_of(document).items():
        if "properties" not in schema:
            unions.append(f"{name} = {type_of(schema, PYTHON)}")
            continue
        required = schema.get("required", ())
        kinds = {key: _quoted(type_of(each, PYTHON)) for key, each in schema["properties"].items()}
        fields = {
            key: kind if key in required else f"NotRequired[{kind}]" for key, kind in kinds.items()
        }
        if any(map(keyword.iskeyword, fields)):
            yield f"\n{name} = TypedDict({json.dumps(name)}, {{"
            yield from (f"    {json.dumps(key)}: {kind}," for key, kind in fields.items())
            yield "})\n"
            continue
        yield f"\nclass {name}(TypedDict):"
        if text := schema.get("description"):
            yield f'    """{one_line(text)}"""\n'
        yield from (f"    {key}: {kind}" for key, kind in fields.items())
        yield ""
    yield "\n" + "\n".join(unions)


def _quoted(kind: str) -> str:
    """Quote a type that names others, which may be defined later in the file."""
    plain = re.sub(r'"[^"]*"', "", kind)
    names = set(re.findall(r"[A-Z]\w+", plain)) - {"Any", "Literal", "None"}
    return f"'{kind}'" if names else kind


def _operations(document: Schema, *, coroutine: bool) -> Iterator[str]:
    found = operations_of(document)
    kinds = [
        type_of(schema, PYTHON)
        for each in found
        for schema in (each.body, each.item, *each.results)
        if schema
    ]
    names = sorted({name for name in kinds if name.isidentifier() and name != "Any"})
    name, word = ("AsyncOperations", "coroutines") if coroutine else ("Operations", "methods")
    yield f'"""The calls of the API as {word}.\n\n{NOTE}\n"""\n'
    yield f"from collections.abc import {'AsyncIterator' if coroutine else 'Iterator'}"
    yield "from typing import Any, Literal\n"
    yield "from rme_client.calls import Call, quoted"
    yield f"from rme_client.types import {', '.join(names)}\n"
    yield f"\nclass {name}:"
    yield f'    """The calls of the API as {word}."""\n'
    yield f"    {'async ' if coroutine else ''}def _call(self, call: Call) -> Any:"
    yield '        """Perform a call, and return its answer."""'
    yield "        raise AssertionError(call)  # the client has its own\n"
    for each in found:
        yield from _method(each, coroutine=coroutine)
        if each.items:
            yield from _iterator(each, coroutine=coroutine)


def _signature(operation: Operation, skipped: str = "") -> str:
    parts = ["self", *(f"{each.snake}: str" for each in operation.within("path"))]
    if operation.body:
        kind = type_of(operation.body, PYTHON)
        parts.append(f"body: {kind}" if operation.body_required else f"body: {kind} | None = None")
    keywords = [
        f"{each.snake}: {type_of(each.schema, PYTHON)} | None = None"
        for each in (*operation.within("query"), *operation.within("header"))
        if each.name != skipped
    ]
    return ", ".join([*parts, *(["*", *keywords] if keywords else [])])


def _method(operation: Operation, *, coroutine: bool) -> Iterator[str]:
    result = operation.result(PYTHON)
    yield f"    {'async ' if coroutine else ''}def {operation.name}("
    yield f"        {_signature(operation)}) -> {result}:"
    yield f'        """{operation.summary}."""'
    path = re.sub(r"\{(\w+)\}", r"{quoted(\1)}", operation.path)
    parts = [json.dumps(operation.method), f'{"f" if "{" in path else ""}"{path}"']
    for place, argument in (("query", "query"), ("header", "headers")):
        if names := operation.within(place):
            members = ", ".join(f'"{each.name}": {each.snake}' for each in names)
            parts.append(f"{argument}={{{members}}}")
    if operation.body:
        parts.append("body=body" if operation.body_required else "body=body or {}")
    if operation.keyed:
        parts.append("keyed=True")
    yield f"        answer: {result} = {'await ' if coroutine else ''}self._call("
    yield f"            Call({', '.join(parts)}))"
    yield "        return answer\n"


def _iterator(operation: Operation, *, coroutine: bool) -> Iterator[str]:
    name = operation.name.replace("list_", "iterate_")
    kind = "AsyncIterator" if coroutine else "Iterator"
    named = [each for each in operation.within("query") if each.name != "cursor"]
    arguments = ", ".join(f"{each.snake}={each.snake}" for each in named)
    wait = "await " if coroutine else ""
    yield f"    {'async ' if coroutine else ''}def {name}("
    signature = _signature(operation, "cursor")
    yield f"        {signature}) -> {kind}[{type_of(operation.item, PYTHON)}]:"
    yield f'        """{operation.summary}: all pages, one item after another."""'
    yield "        cursor: str | None = None"
    yield "        while True:"
    yield f"            page = {wait}self.{operation.name}({arguments}, cursor=cursor)"
    items = f'page["{operation.items}"]'
    if coroutine:
        yield f"            for item in {items}:"
        yield "                yield item"
    else:
        yield f"            yield from {items}"
    yield '            cursor = page["nextCursor"]'
    yield "            if cursor is None:"
    yield "                return\n"
