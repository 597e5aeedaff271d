"""Schemas that take long to check, of versions that were active before schemas were bounded."""

import asyncio

import orjson
import pytest

from messaging.content.variable_checks import SECONDS_IN_ALL
from messaging.models import IdempotencyKey, Message, TemplateVersion
from rme.core.process import admission
from rme.core.process.errands import ERRANDS
from rme.tenants.models import Organization
from tests import factories
from tests.clocks import StandingClock
from tests.messaging.api.requests_corpus import Sample
from tests.messaging.api.test_single_sends import Caller, Counted, usual
from tests.rest import Api, error, message

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("redis", "redis_clock"),
]

NESTED = {
    "$ref": "#/$defs/d0",
    "$defs": {
        **{f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(30)},
        "d30": {"required": ["never"]},
    },
}
PATTERN = {"properties": {"a": {"pattern": "[ab]*a[ab]{0,9000}[^ab]"}}}
LONG = {"a": "ab" * 30_000}
TOO_LONG = "takes too long to check with the template's schema"


def slow_template(org, schema):
    """Make a template whose schema was stored by a release that did not bound it."""
    version = factories.template(org, name="slow", text="{{ a }}")
    TemplateVersion.objects.filter(pk=version.pk).update(variables=schema)


def slow(person, variables):
    return message(
        person,
        template={"name": "slow", "language": "en_US"},
        context={"variables": variables},
        channel="EMAIL",
    )


@pytest.fixture
def callers(org):
    other = factories.organization("other")
    factories.welcome(other)
    Organization.objects.update(calls_per_second=1000)
    handler = Counted()
    made = [Caller(org, handler), Caller(other, handler)]
    made[1].gateway = made[0].gateway  # both call one process
    yield made
    made[0].close()


@pytest.mark.parametrize(("schema", "variables"), [(NESTED, {}), (PATTERN, LONG)])
def test_other_organizations_are_answered_while_a_slow_schema_is_checked(
    callers, org, schema, variables
):
    attacker, other = callers
    slow_template(org, schema)
    costly = Sample(orjson.dumps(slow(attacker.person, variables)))
    order = []

    async def send(caller, sample, name):
        start, *_ = await caller.send(sample)
        order.append((name, start["status"]))

    async def run():
        first = [send(attacker, costly, "slow") for _ in range(20)]
        attack = asyncio.gather(*first)
        await asyncio.sleep(0.05)
        for _ in range(10):
            await send(other, Sample(usual(other)), "other")
        await attack

    asyncio.run(run())
    assert [status for name, status in order if name == "other"] == [202] * 10
    statuses = {status for name, status in order if name == "slow"}
    assert statuses <= {400, 429, 503}, statuses
    assert order[-1][0] == "slow"
    assert Message.objects.filter(organization_id="acme").count() == 0


def test_slow_check_in_a_set_has_the_same_result_as_alone(callers, org):
    attacker, _ = callers
    slow_template(org, PATTERN)
    body = slow(attacker.person, {"a": "abb!"})
    wrong = slow(attacker.person, {"a": "abb"})
    answers = attacker.answers([Sample(orjson.dumps(each)) for each in (body, wrong)])
    assert [status for status, *_ in answers] == [202, 400]
    api = Api(org)
    assert api.send(body).status_code == 202
    place = "context.variables.a"
    problem = "must match [ab]*a[ab]{0,9000}[^ab]"
    assert api.send(wrong).json() == error(
        "INVALID_PAYLOAD", f"{place}: {problem}", (place, problem)
    )


def test_total_time_of_a_bulk_of_slow_items_is_bounded(api, org, monkeypatch):
    StandingClock(monkeypatch, admission)  # no second of the budget comes back
    slow_template(org, NESTED)
    person = factories.contact(org)
    response = api.bulk([slow(person, {})] * 60)
    assert ERRANDS.budget.burst > 2 * SECONDS_IN_ALL
    assert not ERRANDS.budget.is_used_up(org.pk)  # it was sixty times 0.25 s
    assert response.status_code == 202
    shown = {each["error"]["message"] for each in response.json()["results"]}
    assert (response.json()["rejected"], shown) == (60, {f"context.variables: {TOO_LONG}"})


def test_exhausted_budget_answers_429_without_using_the_key(api, org):
    slow_template(org, PATTERN)
    body = slow(factories.contact(org), {"a": "abb!"})
    ERRANDS.budget.charge(org.pk, 100.0)
    for send in (
        lambda: api.send(body, HTTP_IDEMPOTENCY_KEY="k"),
        lambda: api.bulk([body]),
    ):
        refused = send()
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "RATE_LIMITED")
        assert 180 < int(refused.headers["Retry-After"]) < 192
    assert IdempotencyKey.objects.count() == 0
    ERRANDS.budget.forget()
    assert api.send(body, HTTP_IDEMPOTENCY_KEY="k").status_code == 202
