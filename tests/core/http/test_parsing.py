"""JSON bodies are bounded in size, values and depth before anything is made of them."""

import time
import tracemalloc

import orjson
import pytest

from rme.core import errors
from rme.core.http.parsing import DEPTH_LIMIT, VALUES_LIMIT, refuse_deep, refuse_many_values
from tests import factories
from tests.rest import error, message

MANY = f"holds more than {VALUES_LIMIT} values"
WRITES = ["/messages", "/messages/bulk", "/consent", "/devices", "/suppressions"]
WRITES += ["/devices/x/replace", "/templates/welcome/render"]


def refused(check, value):
    """Return what a check says of a value, none if it lets it pass."""
    try:
        check(value)
    except errors.InvalidPayload as refusal:
        return refusal.message
    return None


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        (orjson.dumps([1] * (VALUES_LIMIT - 1)), None),
        (orjson.dumps([1] * VALUES_LIMIT), f"body: {MANY}"),
        (orjson.dumps([[]] * VALUES_LIMIT), f"body: {MANY}"),
        (orjson.dumps({f"k{n}": n for n in range(VALUES_LIMIT)}), f"body: {MANY}"),
        # texts may hold whatever looks like values
        (orjson.dumps({"text": 'a, [b], {c} and \\" ' * 100_000}), None),
        (b'"' + b"\\\\" * 100_000 + b'"' + b"," * VALUES_LIMIT, f"body: {MANY}"),
        (b'"' + b"," * VALUES_LIMIT, None),  # without an end: no JSON, as its reader will say
    ],
)
def test_values_are_counted_before_they_are_read(body, wrong):
    assert refused(refuse_many_values, body) == wrong


def test_counting_values_is_linear():
    def cost(n):
        body = b'"' + b'\\"' * n + b"," * VALUES_LIMIT
        started = time.process_time()
        refuse_many_values(body)
        return time.process_time() - started

    cost(1000)
    once = min(cost(200_000) for _ in range(5))
    assert min(cost(1_600_000) for _ in range(3)) < 24 * once  # of a quadratic one: 64 times


@pytest.mark.parametrize("pair", [(b"[", b"]"), (b'{"a":', b"}")])
def test_depth_is_bounded(pair):
    opener, closer = pair

    def nested(depth):
        return orjson.loads(opener * depth + b"1" + closer * depth)

    assert refused(refuse_deep, nested(DEPTH_LIMIT + 1)) is None
    told = f"body: nested deeper than {DEPTH_LIMIT} levels"
    assert refused(refuse_deep, nested(DEPTH_LIMIT + 2)) == told


@pytest.mark.parametrize("path", WRITES)
def test_too_deep_or_too_large_body_is_rejected_by_every_call(api, path):
    told = f"body: {MANY}"
    answer = api.call("POST", path, b"[" + b"{}," * VALUES_LIMIT + b"{}]")
    assert (answer.status_code, answer.json()) == (
        400,
        error("INVALID_PAYLOAD", told, ("body", MANY)),
    )
    key = {"Idempotency-Key": "k"}  # what it digests is bounded too
    for depth in (DEPTH_LIMIT + 2, 500, 100_000):
        answer = api.call("POST", path, b"[" * depth + b"]" * depth, **key)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_PAYLOAD")


def cost(body, call):
    """Return the least CPU seconds of five calls, and the largest memory of one, in bytes."""
    tracemalloc.start()
    call(body)
    largest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    seconds = []
    for _ in range(5):
        started = time.thread_time()
        call(body)
        seconds.append(time.thread_time() - started)
    return min(seconds), largest


def test_unknown_keys_are_rejected_faster_than_they_are_parsed(api):
    body = orjson.dumps({f"k{n:06}": 1 for n in range(290_000)})
    assert len(body) > 3_400_000
    read, _ = min(cost(body, orjson.loads) for _ in range(3))
    seconds, largest = min(
        cost(body, lambda given: api.call("POST", "/messages", given)) for _ in range(3)
    )
    assert seconds < read
    assert largest < 4 * len(body)  # it was 75 times that


@pytest.mark.parametrize("field", ["metadata", "content.data", "to[0]", "push", ""])
def test_too_many_members_of_an_object_are_one_error(api, field):
    many = {f"k{n}": "v" for n in range(50_000)}
    body = message(factories.contact(api.org))
    places = {
        "metadata": {"metadata": many},
        "content.data": {"template": None, "content": {"title": "t", "data": many}},
        "to[0]": {"to": [many]},
        "push": {"push": many},
        "": many,
    }
    given = {**body, **places[field]}
    given = {name: value for name, value in given.items() if value is not None}
    details = api.send(given).json()["error"]["details"]
    (only,) = details
    assert only["field"] == (field or "body")
    assert "100 members" in only["message"] or "at most" in only["message"]


def test_the_list_of_errors_is_capped(api):
    body = message(factories.contact(api.org)) | {f"k{n}": 1 for n in range(60)}
    details = api.send(body).json()["error"]["details"]
    assert len(details) == 20
    assert {each["message"] for each in details} == {"unknown field"}


def test_body_with_many_commas_in_its_text_is_accepted(api):
    text = "one, two, [three], {four}; " * 35_000
    body = message(
        factories.contact(api.org), template=None, content={"subject": "S", "text": text}
    )
    assert api.send(body).status_code == 202
