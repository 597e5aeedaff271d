"""The OpenAPI description as the clients need it: named types, and operations."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

PREFIX = "/rme/v1"
NOTE = "Generated from the OpenAPI description by `make clients`; not to be edited."

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Language:
    """How a language writes types. `indented` types of several lines are the caller's matter."""

    scalars: Mapping[str, str]
    null: str
    nothing: str
    anything: str
    literal: Callable[[list[str]], str]
    array: Callable[[str], str]
    mapping: Callable[[str], str]


def type_of(schema: Schema, language: Language) -> str:
    """Return the type of a value, in a language."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return language.literal([json.dumps(value) for value in schema["enum"]])
    if "const" in schema:
        return language.literal([json.dumps(schema["const"])])
    choices = schema.get("anyOf", schema.get("oneOf", ()))
    if choices and "properties" not in schema:
        named = [each for each in choices if "enum" in each]
        # Values in any case: the description names them, and adds a pattern.
        shown = named if schema.get("type") == "string" and named else choices
        return " | ".join(dict.fromkeys(type_of(each, language) for each in shown))
    kind = schema.get("type")
    if kind == "null":
        return language.null
    if kind == "array":
        return language.array(type_of(schema.get("items", {}), language))
    if kind == "object":
        values = schema.get("additionalProperties")
        inner = type_of(values, language) if isinstance(values, dict) else language.anything
        return language.mapping(inner)
    return language.scalars.get(str(kind), language.anything)


def schemas_of(document: Schema) -> dict[str, Schema]:
    """Return the named schemas, with a name for each object that is described in place."""
    found: dict[str, Schema] = {}

    def named(name: str, schema: Schema) -> Schema:
        if "properties" in schema:
            members = {key: inner(name, key, value) for key, value in schema["properties"].items()}
            schema = {**schema, "properties": members}
        return schema

    def inner(name: str, key: str, schema: Schema) -> Schema:
        own = f"{name}{key[0].upper()}{key[1:]}"
        if schema.get("type") == "object" and "properties" in schema:
            found[own] = named(own, schema)
            return {"$ref": own}
        if "anyOf" in schema and schema.get("type") != "string":
            return {**schema, "anyOf": [inner(name, key, each) for each in schema["anyOf"]]}
        return schema

    for name, schema in sorted(document["components"]["schemas"].items()):
        found[name] = named(name, schema)
    return found


# --- operations -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parameter:
    """A parameter of the path, the query or a header."""

    name: str
    place: str
    schema: Schema

    @property
    def snake(self) -> str:
        words = re.sub(r"([a-z])([A-Z])", r"\1_\2", self.name)
        return words.replace("-", "_").lower()

    @property
    def camel(self) -> str:
        first, *rest = self.snake.split("_")
        return first + "".join(word.title() for word in rest)


@dataclass(frozen=True)
class Operation:
    """A call of the API. `items` is the field of a page that holds its items."""

    name: str
    method: str
    path: str
    summary: str
    parameters: tuple[Parameter, ...]
    body: Schema | None
    body_required: bool
    results: tuple[Schema, ...]
    items: str
    item: Schema

    @property
    def keyed(self) -> bool:
        return any(each.name == "Idempotency-Key" for each in self.parameters)

    def within(self, place: str) -> list[Parameter]:
        return [each for each in self.parameters if each.place == place]

    def result(self, language: Language) -> str:
        """Return the type of the answer."""
        kinds = dict.fromkeys(type_of(each, language) for each in self.results)
        return " | ".join(kinds) or language.nothing


def operations_of(document: Schema) -> list[Operation]:
    """Return the operations of the description, by name."""
    schemas = document["components"]["schemas"]
    found = []
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            content = described.get("requestBody", {}).get("content", {})
            results = tuple(
                answer["content"]["application/json"]["schema"]
                for status, answer in sorted(described["responses"].items())
                if status.startswith("2") and "content" in answer
            )
            parameters = tuple(
                Parameter(each["name"], each["in"], each["schema"])
                for each in described.get("parameters", ())
            )
            items, item = _items(schemas, parameters, results)
            found.append(
                Operation(
                    described["operationId"],
                    method.upper(),
                    path.removeprefix(PREFIX),
                    described.get("summary", ""),
                    parameters,
                    content.get("application/json", {}).get("schema"),
                    described.get("requestBody", {}).get("required", False),
                    results,
                    items,
                    item,
                )
            )
    return sorted(found, key=lambda each: each.name)


def _items(
    schemas: Schema, parameters: tuple[Parameter, ...], results: tuple[Schema, ...]
) -> tuple[str, Schema]:
    if all(each.name != "cursor" for each in parameters):
        return "", {}
    members = schemas[results[0]["$ref"].rpartition("/")[2]]["properties"]
    ((name, item),) = [
        (name, each["items"]) for name, each in members.items() if each.get("type") == "array"
    ]
    return name, item


def one_line(text: str) -> str:
    """Return a description as one line of a comment."""
    return " ".join(text.split()).replace('"', "'")[:88]
