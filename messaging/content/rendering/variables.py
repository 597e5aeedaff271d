"""Check a template's variables by its schema: JSON Schema (Draft 2020-12), within limits.

A schema is untrusted code too. It loads nothing (references stay within it), its patterns match in
time linear in the text and in the pattern (Rust's regular expressions, through pydantic), equal
items are found without comparing all pairs, and every keyword checks the clock. What a schema may
cost is bounded (`schema_cost`); `schema_rules` refuses schemas that no version may have.

`quick_problems` takes some milliseconds at most, and gives up on what takes longer. `check_each`
takes as long as it needs: run it where it can be killed. Not supported are `patternProperties` and
`unevaluated…`, which jsonschema evaluates without a hook, and what renames schemas (`$id`,
`$anchor`). `format` is an annotation and is not checked, as in the draft.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from typing import Annotated, Any, NamedTuple

import orjson
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError
from pydantic import StringConstraints, TypeAdapter
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from messaging.content.rendering.errors import RenderLimit
from messaging.content.rendering.limits import DATA_LIMIT
from messaging.content.rendering.schema_cost import evaluations, pattern_cost
from messaging.content.rendering.values import weigh
from messaging.domain.sentences import sentence

SECONDS = 0.25
"""CPU time of the check of one recipient's variables."""
PROBLEMS = 20
"""The number of problems that are reported at once."""
QUICK_EVALUATIONS = 200
"""What a schema may cost to be checked at once (`schema_cost.evaluations`)."""
QUICK_PATTERN = 1_000
"""The steps of a pattern that is compiled at once: ten milliseconds."""
QUICK_MATCH = 200_000
"""The steps of a pattern times the characters of a text, of a match at once: a millisecond."""
TOO_LONG = sentence("takes too long to check with the template's schema")

Problems = list[tuple[str, str]]
"""Path and message of each variable that is missing or wrong."""

_deadline: ContextVar[float] = ContextVar("deadline")
_is_quick: ContextVar[bool] = ContextVar("is_quick", default=False)
"""Whether the check must not start a slow match, since nothing can interrupt it."""


class _TooLong(Exception):
    """The time for a check is used up."""


def resolver(schema: dict[str, Any]) -> Callable[[str], object]:
    """Return a function that finds the target of a reference in a schema, or None."""
    resource = Resource.from_contents(schema, default_specification=DRAFT202012)
    references = Registry[Any]().with_resource("", resource).resolver()

    def resolve(reference: str) -> object:
        try:
            return references.lookup(reference).contents if reference[:1] == "#" else None
        except Unresolvable:
            return None

    return resolve


_pattern_cost = lru_cache(maxsize=4096)(pattern_cost)


@lru_cache(maxsize=512)
def compiled_pattern(pattern: str) -> TypeAdapter[str]:
    """Compile a pattern with Rust's linear engine, which pydantic uses."""
    return TypeAdapter(Annotated[str, StringConstraints(pattern=pattern)])


def _matches(_: object, pattern: str, instance: object, __: object) -> Iterator[ValidationError]:
    if isinstance(instance, str):
        if _is_quick.get():
            cost = _pattern_cost(pattern)
            if cost > QUICK_PATTERN or cost * len(instance) > QUICK_MATCH:
                raise _TooLong
        try:
            compiled_pattern(pattern).validate_python(instance)
        except ValueError:
            yield ValidationError(sentence("does not match the pattern"))


def _unique(
    _: object, is_required: object, instance: object, __: object
) -> Iterator[ValidationError]:
    if is_required and isinstance(instance, list):
        seen = {orjson.dumps(_number(item), option=orjson.OPT_SORT_KEYS) for item in instance}
        if len(seen) < len(instance):
            yield ValidationError(sentence("has non-unique elements"))


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


class _PreparedSchema(NamedTuple):
    """A schema, ready to check values."""

    validator: Any
    is_quick: bool
    """Whether it is cheap enough to check values at once."""


@lru_cache(maxsize=512)
def _prepared(schema: bytes) -> _PreparedSchema:
    parsed = orjson.loads(schema)
    parsed.pop("$schema", None)
    try:
        cost = evaluations(parsed, resolver(parsed), QUICK_EVALUATIONS)
    except Exception:  # noqa: BLE001 (a schema stored unchecked may raise anything)
        cost = QUICK_EVALUATIONS + 1
    return _PreparedSchema(_Validator(parsed, registry=Registry()), cost <= QUICK_EVALUATIONS)


def defaults(schema: Mapping[str, object]) -> dict[str, object]:
    """Return the default values of a schema by variable."""
    properties = schema.get("properties")
    rules = properties.items() if isinstance(properties, dict) else ()
    return {name: rule["default"] for name, rule in rules if "default" in _rule(rule)}


def _rule(rule: object) -> dict[str, object]:
    return rule if isinstance(rule, dict) else {}  # true and false are schemas too


def missing_variables(
    schema: Mapping[str, object], variables: Mapping[str, object], *, seconds: float = SECONDS
) -> Problems:
    """Return path and message for each variable that is missing or has a wrong type.

    A variable with a default is not missing. A path is like `order.items[0].name`. At most
    `PROBLEMS` are returned.
    """
    try:
        return _check(schema, variables, seconds)
    except _TooLong:
        return [("", TOO_LONG)]


def quick_problems(
    schema: Mapping[str, object], variables: Mapping[str, object], seconds: float
) -> Problems | None:
    """Return the same as `missing_variables`; None if it would take longer than `seconds`."""
    token = _is_quick.set(True)
    try:
        return _check(schema, variables, seconds)
    except _TooLong:
        return None
    finally:
        _is_quick.reset(token)


def check_each(
    pairs: Sequence[tuple[Mapping[str, object], Mapping[str, object]]], seconds: float
) -> list[Problems]:
    """Return the problems of each pair of schema and variables, within `seconds` for all."""
    until = time.thread_time() + seconds
    return [
        missing_variables(
            schema, variables, seconds=max(0.0, min(SECONDS, until - time.thread_time()))
        )
        for schema, variables in pairs
    ]


def _check(
    schema: Mapping[str, object], variables: Mapping[str, object], seconds: float
) -> Problems:
    """Return the problems of variables. Raises _TooLong."""
    if not schema:
        return []
    started = _deadline.set(time.thread_time() + seconds)
    try:
        weigh(variables, DATA_LIMIT)
        values = {**defaults(schema), **variables}
        prepared = _prepared(orjson.dumps(schema))
        if _is_quick.get() and not prepared.is_quick:
            raise _TooLong
        errors = prepared.validator.iter_errors(values)
        return [_problem(error) for error in islice(errors, PROBLEMS)]
    except RenderLimit:
        return [("", sentence("is too large"))]
    except _TooLong:
        raise
    except Exception as error:  # noqa: BLE001 (a schema stored unchecked may raise anything)
        return [
            (
                "",
                sentence(
                    "cannot be checked with the template's schema (%(type)s)",
                    type=type(error).__name__,
                ),
            )
        ]
    finally:
        _deadline.reset(started)


def _problem(error: ValidationError) -> tuple[str, str]:
    path = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path
    ).removeprefix(".")
    rule = error.validator_value
    match error.validator:
        case "required":
            # One error for each name, and only its message contains the name.
            name = next(n for n in rule if error.message.startswith(repr(n)))
            return f"{path}.{name}".removeprefix("."), sentence("is required by the template")
        case "type":
            return (
                path,
                sentence(
                    "must be of type %(type)s",
                    type=rule if isinstance(rule, str) else " or ".join(rule),
                ),
            )
        case "enum":
            return path, sentence(
                "must be one of %(values)s", values=", ".join(map(str, rule))[:300]
            )
        case "minLength" | "minItems":
            return path, sentence("must have at least %(rule)s", rule=rule)
        case "maxLength" | "maxItems":
            return path, sentence("must have at most %(rule)s", rule=rule)
        case "pattern":
            return path, sentence("must match %(rule)s", rule=rule[:300])
    return path, sentence(
        "does not fit the template's schema (%(validator)s)", validator=error.validator
    )
