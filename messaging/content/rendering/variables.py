"""The schema of a template's variables: JSON Schema (Draft 2020-12), within limits.

A schema is untrusted code too. It loads nothing (references stay within it), its patterns are
matched in linear time (Rust's regular expressions, through pydantic), equal items are found without
comparing all pairs, and every keyword checks the clock. Not supported are `patternProperties` and
`unevaluated…`, which jsonschema evaluates without a hook, and what renames schemas (`$id`,
`$anchor`). `format` is an annotation and is not checked, as in the draft.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from typing import Annotated, Any

import orjson
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import SchemaError, ValidationError
from pydantic import StringConstraints, TypeAdapter
from pydantic_core import SchemaError as PatternError
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from messaging.content.rendering.errors import RenderLimit
from messaging.content.rendering.limits import DATA_LIMIT
from messaging.content.rendering.values import weigh

SIZE_LIMIT = 50_000
SECONDS = 0.25
PROBLEMS = 20
"""The number of problems that are reported at once."""

_DEPTH = 20
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFUSED = {
    "$anchor": "references lead to a place in the schema (#/$defs/…)",
    "$dynamicAnchor": "references lead to a place in the schema (#/$defs/…)",
    "$dynamicRef": "references lead to a place in the schema (#/$defs/…)",
    "$id": "a template's schema has no address",
    "$vocabulary": "a template's schema has the standard's keywords",
    "patternProperties": "name the properties, or use propertyNames",
    "unevaluatedItems": "use items",
    "unevaluatedProperties": "use additionalProperties",
}
_ONE = ("additionalProperties", "items", "contains", "not", "if", "then", "else", "propertyNames")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "$defs", "definitions", "dependentSchemas")

_deadline: ContextVar[float] = ContextVar("deadline")


class _TooLong(Exception):
    """The time for a check is used up."""


def schema_problem(schema: object) -> str | None:
    """Return why a schema cannot be used, or None."""
    if not isinstance(schema, dict):
        return "must be an object"
    try:
        if len(orjson.dumps(schema)) > SIZE_LIMIT:
            return f"larger than {SIZE_LIMIT} bytes"
        wrong = _keyword_problem(schema)
        if not wrong:
            Draft202012Validator.check_schema(schema, format_checker=None)
            wrong = _default_problem(schema)
    except (TypeError, RecursionError):
        return "is not JSON, or nested too deep"
    except SchemaError as error:
        return f"is not JSON Schema: {error.message[:200]}"
    return wrong


def _default_problem(schema: dict[str, object]) -> str | None:
    """Check the defaults: one that does not fit would refuse every send that relies on it."""
    known = defaults(schema)
    for path, message in missing_variables(schema, {}) if known else ():
        if _head(path) in known:
            return f"the default of {path} {message}"
    return None


def _head(path: str) -> str:
    return path.partition(".")[0].partition("[")[0]


def _keyword_problem(schema: dict[str, object]) -> str | None:
    """Check all subschemas for keywords that are not supported or would be misread."""
    found = list(_schemas(schema))
    if any(depth > _DEPTH for _, depth in found):
        return "is nested too deep"
    for each, depth in found:
        for keyword in _REFUSED.keys() & each.keys():
            return f"{keyword} is not supported: {_REFUSED[keyword]}"
        # For a schema that names its dialect jsonschema uses its own class instead of `_Validator`.
        if "$schema" in each and (depth or str(each["$schema"]).rstrip("#") != _DIALECT):
            return f"$schema must be {_DIALECT}, at the top"
        if (wrong := _pattern_problem(each.get("pattern"))) is not None:
            return wrong
    return _reference_problem(schema, [each for each, _ in found])


def _reference_problem(schema: dict[str, Any], found: list[dict[str, Any]]) -> str | None:
    """Check that references lead to subschemas, neither outside nor into data."""
    known = {id(each) for each in found}
    resource = Resource.from_contents(schema, default_specification=DRAFT202012)
    resolver = Registry[Any]().with_resource("", resource).resolver()
    for each in found:
        reference = each.get("$ref")
        if reference is None:
            continue
        try:
            target = resolver.lookup(reference).contents if reference[:1] == "#" else None
        except (Unresolvable, TypeError):
            target = None
        if not isinstance(target, bool) and id(target) not in known:
            return f"$ref leads to no schema in it (#/$defs/…): {str(reference)[:100]}"
    return None


def _schemas(schema: dict[str, object]) -> Iterator[tuple[dict[str, object], int]]:
    """Yield a schema and its subschemas, each with its depth; property names are not keywords."""
    pending: list[tuple[Any, int]] = [(schema, 0)]
    while pending:
        each, depth = pending.pop()
        if not isinstance(each, dict):
            continue
        yield each, depth
        found = [each[key] for key in _ONE if key in each]
        for key in _LISTS:
            found += each[key] if isinstance(each.get(key), list) else []
        for key in _NAMED:
            found += each[key].values() if isinstance(each.get(key), dict) else []
        pending += [(one, depth + 1) for one in found]


def _pattern_problem(pattern: object) -> str | None:
    if not isinstance(pattern, str):
        return None  # absent, or not JSON Schema, which is reported elsewhere
    try:
        _pattern(pattern)
    except PatternError:
        return f"pattern is not a regular expression without look-around: {pattern[:100]}"
    return None


@lru_cache(maxsize=512)
def _pattern(pattern: str) -> TypeAdapter[str]:
    """Compile a pattern with Rust's linear engine, which pydantic uses."""
    return TypeAdapter(Annotated[str, StringConstraints(pattern=pattern)])


def _matches(_: object, pattern: str, instance: object, __: object) -> Iterator[ValidationError]:
    if isinstance(instance, str):
        try:
            _pattern(pattern).validate_python(instance)
        except ValueError:
            yield ValidationError("does not match the pattern")


def _unique(_: object, wanted: object, instance: object, __: object) -> Iterator[ValidationError]:
    if wanted and isinstance(instance, list):
        seen = {orjson.dumps(_number(item), option=orjson.OPT_SORT_KEYS) for item in instance}
        if len(seen) < len(instance):
            yield ValidationError("has non-unique elements")


def _number(value: object) -> object:
    """Return 1 for 1.0: they are equal in JSON."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _timed(check: Callable[..., Any]) -> Callable[..., Iterator[ValidationError]]:
    """Wrap a keyword so that it checks the clock first."""

    def keyword(
        validator: Any, value: Any, instance: Any, schema: Any
    ) -> Iterator[ValidationError]:
        if time.thread_time() > _deadline.get():
            raise _TooLong
        yield from check(validator, value, instance, schema) or ()

    return keyword


_Validator: Any = validators.extend(
    Draft202012Validator,
    {
        name: _timed(check)
        for name, check in {
            **Draft202012Validator.VALIDATORS,
            "pattern": _matches,
            "uniqueItems": _unique,
        }.items()
    },
)


@lru_cache(maxsize=512)
def _validator(schema: bytes) -> Any:
    parsed = orjson.loads(schema)
    parsed.pop("$schema", None)
    return _Validator(parsed, registry=Registry())


def defaults(schema: Mapping[str, object]) -> dict[str, object]:
    """Return the default values of a schema by variable."""
    properties = schema.get("properties")
    rules = properties.items() if isinstance(properties, dict) else ()
    return {name: rule["default"] for name, rule in rules if "default" in _rule(rule)}


def _rule(rule: object) -> dict[str, object]:
    return rule if isinstance(rule, dict) else {}  # true and false are schemas too


def missing_variables(
    schema: Mapping[str, Any], variables: Mapping[str, Any], *, seconds: float = SECONDS
) -> list[tuple[str, str]]:
    """Return path and message for each variable that is missing or has a wrong type.

    A variable with a default is not missing. A path is like `order.items[0].name`. At most
    `PROBLEMS` are returned.
    """
    if not schema:
        return []
    started = _deadline.set(time.thread_time() + seconds)
    try:
        weigh(variables, DATA_LIMIT)
        given = {**defaults(schema), **variables}
        errors = _validator(orjson.dumps(schema)).iter_errors(given)
        return [_problem(error) for error in islice(errors, PROBLEMS)]
    except RenderLimit:
        return [("", "is too large")]
    except _TooLong:
        return [("", "takes too long to check with the template's schema")]
    except Exception as error:  # noqa: BLE001 (a schema stored unchecked may raise anything)
        return [("", f"cannot be checked with the template's schema ({type(error).__name__})")]
    finally:
        _deadline.reset(started)


def _problem(error: ValidationError) -> tuple[str, str]:
    path = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path
    ).removeprefix(".")
    wanted = error.validator_value
    match error.validator:
        case "required":
            # One error for each name, and only its message contains the name.
            name = next(n for n in wanted if error.message.startswith(repr(n)))
            return f"{path}.{name}".removeprefix("."), "is required by the template"
        case "type":
            return (
                path,
                f"must be of type {wanted if isinstance(wanted, str) else ' or '.join(wanted)}",
            )
        case "enum":
            return path, f"must be one of {', '.join(map(str, wanted))}"[:300]
        case "minLength" | "minItems":
            return path, f"must have at least {wanted}"
        case "maxLength" | "maxItems":
            return path, f"must have at most {wanted}"
        case "pattern":
            return path, f"must match {wanted}"[:300]
    return path, f"does not fit the template's schema ({error.validator})"
