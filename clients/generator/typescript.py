"""The TypeScript client's types and methods."""

import re
from collections.abc import Iterator

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

TYPESCRIPT = Language(
    {"string": "string", "integer": "number", "number": "number", "boolean": "boolean"},
    "null",
    "void",
    "unknown",
    " | ".join,
    lambda item: f"({item})[]" if " | " in item else f"{item}[]",
    lambda item: f"Record<string, {item}>",
)


def types(document: Schema) -> str:
    """Return the schemas as interfaces."""
    return "\n".join(_types(document)) + "\n"


def operations(document: Schema) -> str:
    """Return an abstract class with a method for each operation."""
    return "\n".join(_operations(document)) + "\n"


def _types(document: Schema) -> Iterator[str]:
    yield f"// The bodies and answers of the API. {NOTE}"
    for name, schema in schemas_of(document).items():
        yield ""
        if text := schema.get("description"):
            yield f"/** {one_line(text)} */"
        if "properties" not in schema:
            yield f"export type {name} = {type_of(schema, TYPESCRIPT)};"
            continue
        required = schema.get("required", ())
        yield f"export interface {name} {{"
        for key, value in schema["properties"].items():
            mark = "" if key in required else "?"
            yield f"  {key}{mark}: {type_of(value, TYPESCRIPT)};"
        yield "}"


def _operations(document: Schema) -> Iterator[str]:
    yield f"// The calls of the API. {NOTE}"
    yield 'import type * as types from "./types.js";\n'
    yield "/** What a call sends. `keyed`: it takes an Idempotency-Key. */"
    yield "export interface Call {"
    yield "  method: string;"
    yield "  path: string;"
    yield "  query?: Record<string, string | number | boolean | undefined>;"
    yield "  headers?: Record<string, string | undefined>;"
    yield "  body?: unknown;"
    yield "  keyed?: boolean;"
    yield "}\n"
    yield "export abstract class Operations {"
    yield "  /** Perform a call, and return its answer. */"
    yield "  protected abstract call<T>(call: Call): Promise<T>;"
    for each in operations_of(document):
        yield from _method(each)
        if each.items:
            yield from _iterator(each)
    yield "}"


def _typed(schema: Schema) -> str:
    name = r"(?<![\w\".])([A-Z]\w*[a-z]\w*)(?![\w\"<])"
    return re.sub(name, r"types.\1", type_of(schema, TYPESCRIPT))


def _options(operation: Operation, skipped: str = "") -> str:
    named = [*operation.within("query"), *operation.within("header")]
    members = [f"{n.camel}?: {_typed(n.schema)} | undefined" for n in named if n.name != skipped]
    return f"options: {{ {'; '.join(members)} }} = {{}}" if members else ""


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _signature(operation: Operation, skipped: str = "") -> str:
    parts = [f"{each.camel}: string" for each in operation.within("path")]
    if operation.body:
        parts.append(
            f"body: {_typed(operation.body)}" + ("" if operation.body_required else " = {}")
        )
    if options := _options(operation, skipped):
        parts.append(options)
    return ", ".join(parts)


def _result(operation: Operation) -> str:
    return " | ".join(dict.fromkeys(map(_typed, operation.results))) or "void"


def _method(operation: Operation) -> Iterator[str]:
    result = _result(operation)
    path = operation.path
    for each in operation.within("path"):
        path = path.replace(f"{{{each.name}}}", f"${{encodeURIComponent({each.camel})}}")
    parts = [f'method: "{operation.method}"', f"path: `{path}`"]
    for place, member in (("query", "query"), ("header", "headers")):
        if names := operation.within(place):
            inner = ", ".join(f'"{n.name}": options.{n.camel}' for n in names)
            parts.append(f"{member}: {{ {inner} }}")
    parts += ["body"] if operation.body else []
    parts += ["keyed: true"] if operation.keyed else []
    yield ""
    yield f"  /** {operation.summary}. */"
    yield f"  {_camel(operation.name)}({_signature(operation)}): Promise<{result}> {{"
    yield "    return this.call({"
    yield from (f"      {part}," for part in parts)
    yield "    });"
    yield "  }"


def _iterator(operation: Operation) -> Iterator[str]:
    name = _camel(operation.name.replace("list_", "iterate_"))
    kind = _typed(operation.item)
    yield ""
    yield f"  /** {operation.summary}: all pages, one item after another. */"
    yield f"  async *{name}({_signature(operation, 'cursor')}): AsyncGenerator<{kind}> {{"
    yield "    let cursor: string | undefined;"
    yield "    do {"
    call = f"this.{_camel(operation.name)}({{ ...options, cursor }})"
    yield f"      const page: {_result(operation)} = await {call};"
    yield f"      yield* page.{operation.items};"
    yield "      cursor = page.nextCursor ?? undefined;"
    yield "    } while (cursor !== undefined);"
    yield "  }"
