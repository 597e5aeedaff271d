"""The variables that a template needs, as JSON Schema (Draft 2020-12)."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import orjson
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError

SIZE_LIMIT = 50_000
FORBIDDEN = {
    "pattern": "regular expressions can take for ever",
    "patternProperties": "regular expressions can take for ever",
    "$dynamicRef": "references lead outside",
    "$ref": "references lead outside",
}


def schema_problem(schema: Any) -> str | None:
    """Say why a schema cannot be used, or None."""
    if not isinstance(schema, dict):
        return "must be an object"
    if len(orjson.dumps(schema)) > SIZE_LIMIT:
        return f"larger than {SIZE_LIMIT} bytes"
    for keyword in _keywords(schema):
        if keyword in FORBIDDEN:
            return f"{keyword} is not supported: {FORBIDDEN[keyword]}"
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"is not JSON Schema: {error.message[:200]}"
    return None


def _keywords(schema: Any) -> Iterator[str]:
    pending = [schema]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield from value
            pending += value.values()
        elif isinstance(value, list):
            pending += value


@lru_cache(maxsize=512)
def _validator(schema: bytes) -> Draft202012Validator:
    return Draft202012Validator(orjson.loads(schema))


def missing_variables(
    schema: Mapping[str, Any], variables: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """Give (path, message) of each variable that is missing or of another type."""
    if not schema:
        return []
    validator = _validator(orjson.dumps(schema, option=orjson.OPT_SORT_KEYS))
    return [_told(error) for error in validator.iter_errors(variables)]


def _told(error: ValidationError) -> tuple[str, str]:
    path = [str(step) for step in error.absolute_path]
    if error.validator == "required":
        names = [name for name in error.validator_value if name not in error.instance]
        wanted = next((n for n in names if f"'{n}'" in error.message), names[0])
        return ".".join([*path, wanted]), "is required by the template"
    if error.validator == "type":
        return ".".join(path), f"must be of type {error.validator_value}"
    return ".".join(path), f"does not fit the template's schema ({error.validator})"
