"""The schema of a template's variables: what it says of values, and what it may not be."""

import socket
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from messaging.content.rendering import (
    check_each,
    defaults,
    missing_variables,
    quick_problems,
    schema_problem,
)

DRAFT = "https://json-schema.org/draft/2020-12/schema"
ORDER = {
    "$schema": DRAFT,
    "type": "object",
    "required": ["note", "order"],
    "properties": {
        "note": {"type": "string", "minLength": 2, "pattern": "^[A-Z]"},
        "pattern": {"type": "integer"},
        "plan": {"enum": ["gold", "silver"]},
        "order": {
            "type": "object",
            "required": ["items"],
            "properties": {
                "items": {
                    "type": "array",
                    "items": {"$ref": "#/$defs/item"},
                    "uniqueItems": True,
                    "minItems": 1,
                }
            },
        },
    },
    "$defs": {
        "item": {
            "type": "object",
            "required": ["name"],
            "properties": {"price": {"type": ["number", "null"]}},
        }
    },
}
FINE = {"note": "Hello", "order": {"items": [{"name": "Pen", "price": 1.5}]}}


def order(**given: object) -> dict[str, object]:
    return {**FINE, **given}


@pytest.mark.parametrize(
    ("variables", "problems"),
    [
        (FINE, []),
        (order(more=1), []),
        ({}, [("note", "is required by the template"), ("order", "is required by the template")]),
        (order(note=1), [("note", "must be of type string")]),
        (order(note="A"), [("note", "must have at least 2")]),
        (order(note="hello"), [("note", "must match ^[A-Z]")]),
        (order(pattern="x"), [("pattern", "must be of type integer")]),
        (order(plan="tin"), [("plan", "must be one of gold, silver")]),
        (order(order={}), [("order.items", "is required by the template")]),
        (order(order={"items": []}), [("order.items", "must have at least 1")]),
        (
            order(order={"items": [{"name": "a"}, {"price": "x"}]}),
            [
                ("order.items[1].name", "is required by the template"),
                ("order.items[1].price", "must be of type number or null"),
            ],
        ),
        (
            order(order={"items": [{"name": "a"}, {"name": "a"}]}),
            [("order.items", "does not fit the template's schema (uniqueItems)")],
        ),
    ],
)
def test_invalid_variables_are_named(variables, problems):
    assert schema_problem(ORDER) is None
    assert missing_variables(ORDER, variables) == problems


def test_name_with_quotes_is_reported_unchanged():
    schema = {"required": ["a'b", "'a'", 'x"y']}
    expected = [(name, "is required by the template") for name in ("a'b", "'a'", 'x"y')]
    assert missing_variables(schema, {}) == expected


def test_empty_schema_requires_nothing():
    assert missing_variables({}, {"a": object()}) == []


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, {}),
        ({"properties": {"a": {"default": None}, "b": {}, "c": True}}, {"a": None}),
        ({"properties": {"a": {"properties": {"b": {"default": 1}}}}, "default": {"c": 1}}, {}),
        ({"properties": []}, {}),
    ],
)
def test_defaults_come_from_the_schemas_of_the_variables(schema, expected):
    assert defaults(schema) == expected


def test_variable_with_a_default_is_not_missing_and_is_checked_when_given():
    schema = {"required": ["a", "b"], "properties": {"a": {"type": "string", "default": "x"}}}
    assert missing_variables(schema, {"b": 1}) == []
    assert missing_variables(schema, {"a": 1, "b": 1}) == [("a", "must be of type string")]


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"type": "integer", "default": "x"}, "the default of a must be of type integer"),
        (
            {"items": {"type": "string"}, "default": ["x", 1]},
            "the default of a[1] must be of type string",
        ),
        ({"type": "integer", "default": 5}, None),
    ],
)
def test_invalid_default_is_rejected(rule, problem):
    schema = {"required": ["b"], "properties": {"a": rule, "b": {}}}
    assert schema_problem(schema) == problem


def test_at_most_twenty_problems_are_reported():
    assert len(missing_variables({"required": [f"v{n}" for n in range(90)]}, {})) == 20


def test_property_may_be_named_as_a_keyword():
    names = ("$ref", "$id", "pattern", "patternProperties", "unevaluatedItems")
    assert schema_problem({"properties": {name: {"type": "string"} for name in names}}) is None


def nested(depth: int) -> dict[str, object]:
    schema: dict[str, object] = {}
    for _ in range(depth):
        schema = {"not": schema}
    return schema


def data(depth: int) -> dict[str, object]:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return {"default": value}


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ([], "must be an object"),
        (None, "must be an object"),
        ({"type": "nope"}, "is not JSON Schema"),
        ({"properties": 1}, "is not JSON Schema"),
        ({"pattern": 3}, "is not JSON Schema"),
        ({"multipleOf": 0}, "is not JSON Schema"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "$schema must be"),
        ({"properties": {"a": {"$schema": DRAFT, "pattern": "(a+)+$"}}}, "$schema must be"),
        ({"$ref": "http://127.0.0.1:9/x"}, "leads to no schema"),
        ({"$ref": "file:///etc/passwd"}, "leads to no schema"),
        ({"items": {"$ref": "#/$defs/no"}}, "leads to no schema"),
        ({"$ref": "#/default", "default": {"patternProperties": {}}}, "leads to no schema"),
        ({"$ref": 1}, "leads to no schema"),
        ({"$id": "http://x.y"}, "$id is not supported"),
        ({"allOf": [{"$dynamicRef": "#x"}]}, "$dynamicRef is not supported"),
        ({"$defs": {"a": {"$anchor": "x"}}}, "$anchor is not supported"),
        ({"patternProperties": {"(a+)+$": {}}}, "patternProperties is not supported"),
        ({"if": {"unevaluatedProperties": False}}, "unevaluatedProperties is not supported"),
        ({"pattern": "(?=x)"}, "pattern is not"),
        ({"pattern": r"(a)\1"}, "pattern is not"),
        ({"pattern": "("}, "pattern is not"),
        ({"pattern": "a{1000}{1000}{10}"}, "pattern has too many repetitions"),
        ({"const": "x" * 50_000}, "larger than"),
        (nested(30), "nested too deep"),
        (nested(3_000), "nested too deep"),
        (data(3_000), "nested too deep"),
        ({"default": object()}, "is not JSON"),
    ],
)
def test_unusable_schema_is_rejected(schema, problem):
    assert problem in (schema_problem(schema) or "")


def doubling(depth: int) -> dict[str, object]:
    """A schema that is looked at 2ⁿ times."""
    defs: dict[str, object] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(depth)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{depth}": {"type": "object"}}}


@pytest.mark.parametrize(
    ("schema", "variables", "problems"),
    [
        ({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 400_000 + "!"}, None),
        ({"properties": {"a": {"uniqueItems": True}}}, {"a": [{"x": n} for n in range(9_000)]}, []),
        ({"type": "object"}, {"a": "x" * 1_000_001}, ["is too large"]),
        ({"type": "object"}, {"a": [0] * 200_000}, ["is too large"]),
    ],
)
def test_hostile_schema_or_value_is_bounded(schema, variables, problems):
    assert schema_problem(schema) is None
    started = time.thread_time()
    messages = [message for _, message in missing_variables(schema, variables)]
    assert time.thread_time() - started < 1
    assert messages == (["must match ^(a+)+$"] if problems is None else problems)


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (doubling(7), None),
        (doubling(8), "looks at one value too often"),
        (doubling(40), "looks at one value too often"),
        ({"$ref": "#"}, "looks at one value too often"),
        ({"anyOf": [{"$ref": "#"}, {}]}, "looks at one value too often"),
        ({"anyOf": [{"properties": {"a": {"$ref": "#"}}}]}, None),
        ({"anyOf": [{"properties": {"a": {"$ref": "#"}}}] * 2}, "looks at one value too often"),
        ({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}, None),
        ({"items": {"$ref": "#"}, "contains": {"$ref": "#"}}, "looks at one value too often"),
        ({"properties": {f"p{n}": {"type": "string"} for n in range(1_200)}}, None),
        ({"pattern": "^[A-Z]{2}[0-9]{2}[A-Z0-9]{1,30}$"}, None),
        ({"pattern": r"^[^@\s]{1,64}@[a-z0-9.-]{1,255}$"}, None),
        ({"pattern": "[ab]*a[ab]{0,9000}[^ab]"}, "pattern has too many repetitions"),
        ({"pattern": "(a{1,100}b{1,100}){1,100}"}, "pattern has too many repetitions"),
        ({"pattern": r"\w{200}"}, "pattern has too many repetitions"),
        ({"pattern": "a?" * 10_001}, "pattern has too many repetitions"),
        ({"pattern": "(?x)(a b c d) {9}"}, "pattern has too many repetitions"),
        ({"items": {"pattern": "a{20000}"}}, "pattern has too many repetitions"),
    ],
)
def test_costly_schema_is_refused_when_activated(schema, problem):
    found = schema_problem(schema)
    assert (found is None) if problem is None else (problem in (found or ""))


SLOW = {"properties": {"a": {"pattern": "[ab]*a[ab]{0,9000}[^ab]"}}}


@pytest.mark.parametrize(
    ("schema", "variables"),
    [
        (doubling(40), {}),
        (doubling(7), {}),
        (SLOW, {"a": "ab" * 30_000}),
        (SLOW, {"a": "a"}),  # compiling it takes long
        ({"properties": {"a": {"pattern": "[ab]*a[ab]{0,90}"}}}, {"a": "ab" * 1_000}),
        ({"items": {}, "properties": {"a": {"items": {"anyOf": [{"type": "null"}] * 50}}}},
         {"a": list(range(9_000))}),
    ],
)  # fmt: skip
def test_quick_check_gives_up_on_slow_schemas(schema, variables):
    quick_problems(ORDER, FINE, 0.25)  # loads what it needs
    started = time.thread_time()
    assert quick_problems(schema, variables, 0.002) is None
    assert time.thread_time() - started < 0.05


def test_quick_check_finds_the_same_problems():
    for variables in (FINE, {}, order(note="hello"), order(plan="tin")):
        assert quick_problems(ORDER, variables, 0.25) == missing_variables(ORDER, variables)


def test_checks_together_share_one_time_limit():
    started = time.thread_time()
    found = check_each([(ORDER, {**FINE, "note": "hello"}), *[(doubling(40), {})] * 60], 0.4)
    assert time.thread_time() - started < 2
    too_long = [("", "takes too long to check with the template's schema")]
    assert found == [[("note", "must match ^[A-Z]")], *[too_long] * 60]


def test_schema_active_before_the_bounds_is_still_checked():
    assert check_each([(SLOW, {"a": "abb!"}), (SLOW, {"a": "bbb"})], 1.0) == [
        [],
        [("a", "must match [ab]*a[ab]{0,9000}[^ab]")],
    ]
    assert missing_variables({"$ref": "#"}, {}) == [
        ("", "cannot be checked with the template's schema (RecursionError)")
    ]


@pytest.mark.parametrize(
    ("schema", "variables"),
    [
        ({"$ref": "http://127.0.0.1:9/x"}, {}),
        ({"properties": {"a": {"pattern": "("}}}, {"a": "x"}),
        ({"properties": {"a": {"multipleOf": 0}}}, {"a": 1}),
        ({"type": "nope"}, {}),
        ({"required": 3}, {}),
    ],
)
def test_unchecked_schema_fails_cleanly_and_loads_nothing(schema, variables, monkeypatch):
    def refuse(*_: object) -> None:
        raise AssertionError("a schema was loaded")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    problems = [(path, message[:17]) for path, message in missing_variables(schema, variables)]
    assert problems == [("", "cannot be checked")]


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
KEYWORDS = ["type", "required", "properties", "items", "enum", "pattern", "$ref", "allOf", "not"]


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(KEYWORDS) | st.text(max_size=4), json, max_size=4), json)
def test_any_schema_is_refused_or_works(schema, value):
    problems = (
        []
        if schema_problem(schema)
        else list(missing_variables(schema, {"a": value, "b": [value]}))
    )
    assert {type(path) for path, _ in problems} <= {str}
    unchecked = [message for _, message in problems if "cannot be checked" in message]
    assert unchecked == [] or "$ref" in schema


@settings(deadline=None)
@given(json)
def test_any_value_as_schema_is_accepted_or_has_a_problem(value):
    assert schema_problem(value) is None or isinstance(schema_problem(value), str)
