"""Property: calls that are accepted together get what they would get one by one, and store it."""

import re

import orjson
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from messaging.accept import Call, Submission, accept, idempotency
from messaging.accept.acceptance import accept_set
from messaging.accept.requests import MESSAGE
from messaging.models import (
    Category,
    Delivery,
    IdempotencyKey,
    MessageContent,
    SendingRules,
    Suppression,
)
from messaging.policy import send_limits
from rme.core import errors
from rme.core.cache import TtlCache
from rme.core.http.parsing import parse
from rme.core.redis.rate_limits import Limit, limiter
from tests import factories
from tests.rest import all_events, message

import pytest  # isort: skip

pytestmark = pytest.mark.django_db

UUID = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
PER_DAY = 6
"""The ceiling of the first organization: some examples exceed it."""

items = st.fixed_dictionaries(
    {
        "org": st.sampled_from(["acme", "other"]),
        "test": st.booleans(),
        "person": st.sampled_from([0, 1, "suppressed", "unknown"]),
        "channel": st.sampled_from(["EMAIL", "SMS", "PUSH", "AUTO"]),
        "category": st.sampled_from(["TRANSACTIONAL", "MARKETING", "CAPPED", "NONE"]),
        "content": st.sampled_from(["welcome", "missing", "literal"]),
        "key": st.sampled_from([None, None, "new", "used", "used otherwise"]),
    }
)


@pytest.fixture
def people(org):
    """Make two organizations with the same contacts; gives these by organization."""
    other = factories.organization("other")
    factories.welcome(other)
    SendingRules.objects.create(organization=org, sends_per_day=PER_DAY)
    made = {}
    for row in (org, other):
        for name, fields in (("CAPPED", {"cap_count": 1, "cap_window": 3600}),):
            Category.objects.create(organization=row, name=name, regime="OPT_OUT", **fields)
        first, second, third = factories.contacts(row, 3)
        factories.device(row, first)
        Suppression.objects.create(
            organization=row, channel="EMAIL", address=third.email, reason="COMPLAINT"
        )
        made[row.pk] = {
            "row": row,
            0: str(first.pk),
            1: str(second.pk),
            "suppressed": str(third.pk),
            "unknown": "01a1fb37-a4a4-7470-9fc2-6927566e64b5",
        }
    TtlCache.clear_all()
    return made


def calls_of(people, drawn):
    """Build the calls of drawn items; a key is there once for each caller."""
    calls, seen = [], set()
    for place, item in enumerate(drawn):
        own = people[item["org"]]
        body = message(channel=item["channel"], category=item["category"])
        body["to"] = [{"contactId": own[item["person"]]}]
        if item["content"] == "literal":
            body |= {"content": {"subject": "s", "text": "t"}}
            del body["template"]
        else:
            body["template"]["name"] = item["content"]
        key = item["key"]
        known = None
        if key == "new":
            known = idempotency.key_of(f"new-{place}", body)
        elif key and item["org"] not in seen:
            seen.add(item["org"])
            known = idempotency.key_of("used", USED if key == "used" else body)
        caller = factories.caller(own["row"], test=item["test"])
        calls.append(Call(caller, Submission(parse(MESSAGE, body), known), f"r{place}"))
    return calls


USED = {"the body": "of the first request with the key"}


def use_keys(people):
    for own in people.values():
        body = message()
        body["to"] = [{"contactId": own[1]}]
        first = Submission(parse(MESSAGE, body), idempotency.key_of("used", USED))
        accept(Call(factories.caller(own["row"], test=True), first, "first"))


def shown(outcome):
    """Return what a caller sees of an outcome, without ids."""
    if isinstance(outcome, errors.ApiError):
        body = orjson.dumps(outcome.as_json("r"))
        return "raised", outcome.status, UUID.sub(b"ID", body), sorted(outcome.headers)
    return type(outcome).__name__, outcome.status_code, UUID.sub(b"ID", outcome.body)


def stored():
    """Return what is stored, without ids and times."""
    deliveries = Delivery.objects.order_by("id").values_list(
        "organization_id", "contact_id", "channel", "channels", "address", "category", "status",
        "reason", "detail", "provider", "test", "trace", "priority",
    )  # fmt: skip
    # those of other messages may be between them
    events = sorted(repr((each.organization_id, each.type, each.detail)) for each in all_events())
    keys = IdempotencyKey.objects.order_by("organization_id", "key")
    bodies = MessageContent.objects.order_by("id").values_list("body", flat=True)
    return (
        list(deliveries),
        events,
        list(bodies),
        [(k.organization_id, k.key, k.digest, k.status, UUID.sub(b"ID", k.body.encode()))
         for k in keys],
    )  # fmt: skip


def one_by_one(calls):
    outcomes = []
    for each in calls:
        try:
            outcomes.append(accept(each))
        except errors.ApiError as error:
            outcomes.append(error)
    return outcomes


def undone(people, run, calls):
    """Accept calls on fresh counters and undo it; return what was answered and what was stored."""
    limiter.reset("sends:acme", Limit(PER_DAY, send_limits.DAY))
    limiter.reset("sends:other", Limit(1, send_limits.DAY))
    with transaction.atomic():
        use_keys(people)
        found = [shown(outcome) for outcome in run(calls)], stored()
        transaction.set_rollback(True)
    return found


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(drawn=st.lists(items, min_size=1, max_size=12))
def test_set_answers_and_stores_the_same_as_single_calls(people, redis, drawn):
    calls = calls_of(people, drawn)
    assert undone(people, accept_set, calls) == undone(people, one_by_one, calls)
