"""Which schemas a template's variables may have; `variables` checks values by them."""

from collections.abc import Iterator
from typing import Any

import orjson
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from pydantic_core import SchemaError as PatternError

from messaging.content.rendering.schema_cost import (
    EVALUATIONS_LIMIT,
    PATTERN_LIMIT,
    evaluations,
    pattern_cost,
)
from messaging.content.rendering.variables import (
    compiled_pattern,
    defaults,
    missing_variables,
    resolver,
)
from messaging.domain.sentences import sentence

SIZE_LIMIT = 50_000
"""Bytes of a schema as JSON."""

_DEPTH = 20
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFUSED = {
    "$anchor": sentence("references lead to a place in the schema (#/$defs/…)"),
    "$dynamicAnchor": sentence("references lead to a place in the schema (#/$defs/…)"),
    "$dynamicRef": sentence("references lead to a place in the schema (#/$defs/…)"),
    "$id": sentence("a template's schema has no address"),
    "$vocabulary": sentence("a template's schema has the standard's keywords"),
    "patternProperties": sentence("name the properties, or use propertyNames"),
    "unevaluatedItems": sentence("use items"),
    "unevaluatedProperties": sentence("use additionalProperties"),
}
_ONE = ("additionalProperties", "items", "contains", "not", "if", "then", "else", "propertyNames")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "$defs", "definitions", "dependentSchemas")


def schema_problem(schema: object) -> str | None:
    """Return why a schema cannot be used, or None."""
    if not isinstance(schema, dict):
        return sentence("must be an object")
    try:
        if len(orjson.dumps(schema)) > SIZE_LIMIT:
            return sentence("larger than %(size_limit)s bytes", size_limit=SIZE_LIMIT)
        wrong = _keyword_problem(schema) or _cost_problem(schema)
        if not wrong:
            Draft202012Validator.check_schema(schema, format_checker=None)
            wrong = _default_problem(schema)
    except (TypeError, RecursionError):
        return sentence("is not JSON, or nested too deep")
    except SchemaError as error:
        return sentence("is not JSON Schema: %(message)s", message=error.message[:200])
    return wrong


def _cost_problem(schema: dict[str, Any]) -> str | None:
    if evaluations(schema, resolver(schema)) > EVALUATIONS_LIMIT:
        return sentence(
            "looks at one value too often: nested anyOf, oneOf, allOf and $ref multiply. Name each "
            "case once"
        )
    return None


def _default_problem(schema: dict[str, object]) -> str | None:
    """Check the defaults: one that does not fit would refuse every send that relies on it."""
    default_values = defaults(schema)
    for path, message in missing_variables(schema, {}) if default_values else ():
        if _head(path) in default_values:
            return sentence("the default of %(path)s %(message)s", path=path, message=message)
    return None


def _head(path: str) -> str:
    return path.partition(".")[0].partition("[")[0]


def _keyword_problem(schema: dict[str, object]) -> str | None:
    """Check all subschemas for keywords that are not supported or would be misread."""
    nested = list(_schemas(schema))
    if any(depth > _DEPTH for _, depth in nested):
        return sentence("is nested too deep")
    for subschema, depth in nested:
        for keyword in _REFUSED.keys() & subschema.keys():
            return sentence(
                "%(keyword)s is not supported: %(refused)s",
                keyword=keyword,
                refused=_REFUSED[keyword],
            )
        # For a schema that names its dialect jsonschema uses its own class instead of `_Validator`.
        if "$schema" in subschema and (depth or str(subschema["$schema"]).rstrip("#") != _DIALECT):
            return sentence("$schema must be %(dialect)s, at the top", dialect=_DIALECT)
        if (wrong := _pattern_problem(subschema.get("pattern"))) is not None:
            return wrong
    return _reference_problem(schema, [subschema for subschema, _ in nested])


def _reference_problem(schema: dict[str, Any], subschemas: list[dict[str, Any]]) -> str | None:
    """Check that references lead to subschemas, neither outside nor into data."""
    identities = {id(subschema) for subschema in subschemas}
    resolve = resolver(schema)
    for subschema in subschemas:
        reference = subschema.get("$ref")
        if reference is None:
            continue
        target = resolve(reference) if isinstance(reference, str) else None
        if not isinstance(target, bool) and id(target) not in identities:
            return sentence(
                "$ref leads to no schema in it (#/$defs/…): %(reference)s",
                reference=str(reference)[:100],
            )
    return None


def _schemas(schema: dict[str, object]) -> Iterator[tuple[dict[str, object], int]]:
    """Yield a schema and its subschemas, each with its depth; property names are not keywords."""
    pending: list[tuple[Any, int]] = [(schema, 0)]
    while pending:
        subschema, depth = pending.pop()
        if not isinstance(subschema, dict):
            continue
        yield subschema, depth
        children = [subschema[key] for key in _ONE if key in subschema]
        for key in _LISTS:
            children += subschema[key] if isinstance(subschema.get(key), list) else []
        for key in _NAMED:
            children += subschema[key].values() if isinstance(subschema.get(key), dict) else []
        pending += [(child, depth + 1) for child in children]


def _pattern_problem(pattern: object) -> str | None:
    if not isinstance(pattern, str):
        return None  # absent, or not JSON Schema, which is reported elsewhere
    if pattern_cost(pattern) > PATTERN_LIMIT:
        return sentence(
            "pattern has too many repetitions; use maxLength for lengths: %(pattern)s",
            pattern=pattern[:100],
        )
    try:
        compiled_pattern(pattern)
    except PatternError:
        return sentence(
            "pattern is not a regular expression without look-around: %(pattern)s",
            pattern=pattern[:100],
        )
    return None
