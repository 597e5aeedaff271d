"""Call limits: counted for each organization, and in the headers of every answer."""

from dataclasses import replace

import pytest
from django.conf import settings as django_settings
from django.urls import get_resolver

from messaging.models import SendingRules
from messaging.policy import send_limits
from messaging.policy.organization_policy import of
from rme.core import absence, errors
from rme.core.cache import TtlCache
from rme.core.redis import rate_limits
from rme.core.redis.connection import redis_client
from rme.core.redis.rate_limits import LimitDecision
from rme.tenants.models import Organization
from tests import factories
from tests.clocks import StandingClock
from tests.rest import Api, error, message

POLICY = '"second";q=100;w=1, "day";q=1000000;w=86400'
TOLD = "The organization's limit of calls is reached; see Retry-After."
GONE = "/messages/none"


pytestmark = pytest.mark.usefixtures("redis", "redis_clock")


def limit(org, **fields):
    Organization.objects.filter(pk=org.pk).update(**fields)
    TtlCache.clear_all()


def standing(response):
    return response.status_code, response.get("RateLimit"), response.get("RateLimit-Policy")


@pytest.mark.promise("calls-13", "limits-7")
def test_every_answer_has_the_remaining_calls_of_the_organization(org, api):
    assert standing(api.call("GET", "/health"))[2] == POLICY
    limit(org, calls_per_day=864)  # by the default limit a call is given back after 86 ms
    calls = [
        ("GET", "/messages", None, 200),
        ("GET", "/messages?x=1", None, 400),
        ("GET", GONE, None, 404),
        ("PUT", "/messages", None, 405),
        ("POST", "/messages", b"{", 400),
        ("POST", "/messages", message(factories.contact(org)), 202),
    ]
    for count, (method, path, body, status) in enumerate(calls, start=1):
        found, rate, policy = standing(api.call(method, path, body))
        second, day = rate.split(", ")
        assert (found, policy) == (status, POLICY.replace("1000000", "864"))
        assert day == f'"day";r={864 - count};t={100 * count}'
        assert second == f'"second";r={100 - count};t=1'


@pytest.mark.promise("limits-2")
def test_a_call_without_a_valid_token_is_not_counted(org, api):
    answer = api.call("GET", "/messages", Authorization="Bearer nobody")
    assert standing(answer) == (401, None, None)
    assert redis_client().keys("rme:bucket:calls:*") == []


@pytest.mark.promise("calls-14", "errors-23", "limits-3")
@pytest.mark.parametrize(
    ("fields", "wait", "rate"),
    [
        ({"calls_per_day": 10}, 1, '"second";r=0;t=1, "day";r=9;t=8640'),
        ({"calls_per_day": 1}, 86_400, '"second";r=0;t=1, "day";r=0;t=86400'),
    ],
)
def test_a_call_above_the_limit_is_refused_with_retry_after(org, api, fields, wait, rate):
    limit(org, calls_per_second=1, **fields)
    assert standing(api.call("GET", "/health"))[0] == 200  # loads what a first call needs
    assert api.call("GET", GONE).status_code == 404
    answer = api.call("GET", GONE)
    assert answer.status_code == 429
    assert answer.json() == error("RATE_LIMITED", TOLD)
    assert (answer["Retry-After"], answer["RateLimit"]) == (str(wait), rate)


@pytest.mark.promise("key-13")
def test_a_refused_call_does_not_use_its_key(org, api, redis):
    limit(org, calls_per_day=1)
    body = message(factories.contact(org))
    api.call("GET", GONE)
    assert api.send(body, **{"Idempotency-Key": "k"}).status_code == 429
    redis.flushdb()
    answer = api.send(body, **{"Idempotency-Key": "k"})
    assert (answer.status_code, answer.get("Idempotent-Replayed")) == (202, None)


@pytest.mark.promise("bulk-5")
def test_a_bulk_is_one_call(org, api):
    limit(org, calls_per_day=2)
    people = factories.contacts(org, 3)
    assert api.bulk([message(person) for person in people]).status_code == 202
    assert api.call("GET", GONE).status_code == 404
    assert api.call("GET", GONE).status_code == 429


@pytest.mark.promise("limits-2")
def test_limits_are_separate_for_organizations_test_mode_and_health(org, api):
    other = Api(factories.organization("other"))
    testing = Api(org, mode="TEST")
    limit(org, calls_per_day=1)
    assert api.call("GET", GONE).status_code == 404
    assert api.call("GET", GONE).status_code == 429
    assert testing.call("GET", GONE).status_code == 404
    assert testing.call("GET", GONE).status_code == 429
    assert api.call("GET", "/health").status_code == 200
    assert testing.call("GET", "/health").status_code == 429
    assert other.call("GET", GONE).status_code == 404


@pytest.mark.promise("limits-3")
def test_programs_of_one_organization_share_its_limits(org, api):
    limit(org, calls_per_day=1)
    other = Api(org)
    assert api.call("GET", GONE).status_code == 404
    assert other.call("GET", GONE).status_code == 429


@pytest.mark.promise("limits-8")
def test_calls_pass_without_redis_and_count_nothing(org, api, settings, redis_clock, monkeypatch):
    clock = StandingClock(monkeypatch, absence)
    assert api.call("GET", GONE).status_code == 404  # the token is known now
    address, settings.REDIS_URL = settings.REDIS_URL, "redis://127.0.0.1:1/0"
    redis_client.cache_clear()
    try:
        limit(org, calls_per_day=1, calls_per_second=1)
        answers = [standing(api.call("GET", GONE)) for _ in range(3)]
    finally:
        settings.REDIS_URL = address
        redis_client.cache_clear()
    expected = (404, '"second";r=1, "day";r=1', '"second";q=1;w=1, "day";q=1;w=86400')
    assert answers == [expected] * 3
    clock.advance(rate_limits.AWAY_SECONDS)  # Redis is back, and used again
    redis_clock.advance(1)  # and the first call was a second ago
    assert [api.call("GET", GONE).status_code for _ in range(2)] == [404, 429]


@pytest.mark.promise("calls-13", "limits-2")
def test_every_rest_call_is_metered():
    assert django_settings.REST_FRAMEWORK["DEFAULT_THROTTLE_CLASSES"] == [
        "rme.tenants.oauth.call_limits.CallThrottle"
    ]
    (rest,) = [p for p in get_resolver().url_patterns if str(p.pattern) == "rme/v1/"]
    classes = [p.callback.cls for p in rest.url_patterns if p.name != "openapi"]
    own = [cls for cls in classes if cls.__module__.startswith("messaging.")]
    assert len(own) > 3
    assert [cls for cls in own if "throttle_classes" in vars(cls)] == []


def sending(org, **fields):
    SendingRules.objects.update_or_create(organization=org, defaults=fields)
    TtlCache.clear_all()
    return of(org.pk).sending


@pytest.mark.promise("limits-7")
def test_without_rules_a_million_messages_a_day_may_be_sent(org):
    taken = [send_limits.take(org.pk, of(org.pk).sending, count) for count in (500, 500)]
    assert [each.remaining for each in taken] == [(999_500,), (999_000,)]


@pytest.mark.promise("bulk-5", "limits-4")
def test_ceiling_admits_all_messages_of_a_call_or_none(org):
    rules = sending(org, sends_per_day=10)
    assert [send_limits.take(org.pk, rules, count).allowed for count in (6, 6, 4)] == [
        True,
        False,
        True,
    ]
    with pytest.raises(errors.RateLimited) as raised:
        send_limits.require(org.pk, rules, 1)
    assert raised.value.headers == {"Retry-After": "8640"}
    assert raised.value.message == send_limits.CEILING_REACHED


@pytest.mark.promise("limits-1")
def test_raised_ceiling_has_room_at_once(org):
    used = replace(sending(org), sends_per_day=10)
    assert send_limits.take(org.pk, used, 10).allowed
    assert not send_limits.take(org.pk, used, 1).allowed
    raised = replace(used, sends_per_day=15)
    assert [send_limits.take(org.pk, raised, count).allowed for count in (5, 1)] == [True, False]


@pytest.mark.promise("limits-4")
def test_bulk_above_the_ceiling_per_second_passes_once_and_delays_the_next(org):
    rules = sending(org, sends_per_second=100)
    assert send_limits.take(org.pk, rules, 500).allowed
    assert send_limits.take(org.pk, rules, 1).retry_after == 5
    assert send_limits.take(org.pk, rules, 500).retry_after == 5


@pytest.mark.promise("answer-11")
def test_sends_of_test_applications_count_against_no_ceiling(org):
    rules = sending(org, sends_per_day=1)
    assert send_limits.take(org.pk, rules, 500, test=True) == LimitDecision(allowed=True)
    assert send_limits.take(org.pk, rules, 0) == LimitDecision(allowed=True)
    assert send_limits.take(org.pk, rules, 1).allowed


@pytest.mark.promise("limits-4")
def test_organizations_have_their_own_ceilings(org):
    rules = sending(org, sends_per_day=1)
    other = factories.organization("other")
    assert send_limits.take(org.pk, rules, 1).allowed
    assert not send_limits.take(org.pk, rules, 1).allowed
    assert send_limits.take(other.pk, sending(other, sends_per_day=1), 1).allowed
