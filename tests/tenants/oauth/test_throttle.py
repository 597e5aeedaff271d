"""How often the token endpoint may be called, and by whom it cannot be closed to others."""

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from django.test import Client

from rme.core.db import clock
from rme.tenants.models import GuessCount
from rme.tenants.oauth import applications
from tests.rest import FORM, token
from tests.tenants.conftest import KEY

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

THROTTLED = {
    "error": "temporarily_unavailable",
    "error_description": "There were too many calls; see Retry-After.",
}


def throttled(response):
    assert (response.status_code, response.json()) == (429, THROTTLED)
    assert 1 <= int(response["Retry-After"]) <= 60
    assert (response["Cache-Control"], response["Pragma"]) == ("no-store", "no-cache")


@pytest.mark.promise("tokens-23")
def test_address_calling_too_often_is_rate_limited(program, settings):
    settings.TOKENS_PER_MINUTE = 2
    body = b"grant_type=nonsense"
    calls = [Client().post("/services/oauth2/token", body, FORM) for _ in range(3)]
    assert [call.status_code for call in calls] == [400, 400, 429]
    throttled(calls[-1])
    other = Client(REMOTE_ADDR="192.0.2.1").post("/services/oauth2/token", body, FORM)
    assert other.status_code == 400


@pytest.mark.promise("tokens-23")
def test_client_calling_too_often_is_rate_limited_from_any_address(program, settings):
    settings.TOKENS_PER_MINUTE = 2
    form = f"grant_type=client_credentials&client_id={program.client_id}"
    body = f"{form}&client_secret={program.secret}"
    calls = [
        Client(REMOTE_ADDR=f"192.0.2.{number}").post("/services/oauth2/token", body, FORM)
        for number in range(3)
    ]
    assert [call.status_code for call in calls] == [200, 200, 429]
    throttled(calls[-1])


def test_address_failing_too_often_as_a_client_is_rate_limited(program, settings):
    settings.TOKEN_FAILURES_PER_MINUTE = 3
    for _ in range(3):
        assert token(program.client_id, "wrong").status_code == 401
    throttled(token(program.client_id, "wrong"))
    throttled(token(program.client_id, program.secret))


def test_unsigned_assertions_count_as_failures_and_replays_do_not(program, settings):
    settings.TOKEN_FAILURES_PER_MINUTE = 2
    assertion = program.assertion()
    statuses = [program.exchange(assertion).status_code for _ in range(5)]
    assert statuses == [200, 400, 400, 400, 400]
    forged = program.assertion(key=strange_key())
    assert [program.exchange(forged).status_code for _ in range(2)] == [400, 400]
    throttled(program.exchange(forged))
    throttled(program.exchange(program.assertion(key=KEY, jti="new")))


def strange_key():
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.mark.promise("tokens-23")
def test_stranger_cannot_lock_others_out(program, settings):
    settings.TOKEN_FAILURES_PER_MINUTE = 3
    form = f"grant_type=client_credentials&client_id={program.client_id}&client_secret=x"
    stranger = Client(REMOTE_ADDR="192.0.2.66")
    statuses = [stranger.post("/services/oauth2/token", form, FORM).status_code for _ in range(5)]
    assert statuses == [401, 401, 401, 429, 429]
    assert token(program.client_id, program.secret).status_code == 200


def test_one_failing_client_does_not_stop_another_at_the_same_address(program, settings):
    settings.TOKEN_FAILURES_PER_MINUTE = 1
    application, secret = applications.create_application(
        program.application.organization, "second", program.application.user
    )
    for _ in range(3):
        token(program.client_id, "wrong")
    assert token(application.client_id, secret).status_code == 200


def test_failures_are_limited_without_redis(program, settings, redis_away):
    settings.TOKEN_FAILURES_PER_MINUTE = 3
    assert token(program.client_id, program.secret).status_code == 200
    assert GuessCount.objects.count() == 0
    assert [token(program.client_id, "wrong").status_code for _ in range(3)] == [401] * 3
    throttled(token(program.client_id, "wrong"))
    throttled(token(program.client_id, program.secret))
    throttled(program.exchange(program.assertion()))
    form = f"grant_type=client_credentials&client_id={program.client_id}"
    elsewhere = Client(REMOTE_ADDR="192.0.2.66")
    body = f"{form}&client_secret={program.secret}"
    assert elsewhere.post("/services/oauth2/token", body, FORM).status_code == 200
    GuessCount.objects.update(until=clock.now())
    assert token(program.client_id, program.secret).status_code == 200


def test_forged_assertions_are_limited_without_redis(program, settings, redis_away):
    settings.TOKEN_FAILURES_PER_MINUTE = 2
    forged = program.assertion(key=strange_key())
    assert [program.exchange(forged).status_code for _ in range(2)] == [400, 400]
    throttled(program.exchange(forged))


@pytest.mark.parametrize(
    "client_id",
    ["nobody", "%00", "%F0%9F%A6%8A", "x" * 5000],
    ids=["unknown", "NUL", "beyond ASCII", "long"],
)
def test_any_text_as_a_client_id_is_limited_without_redis(settings, redis_away, client_id):
    settings.TOKEN_FAILURES_PER_MINUTE = 1
    pair = base64.b64encode(f"{client_id}:wrong".encode()).decode()
    headers = {"Authorization": f"Basic {pair}"}
    calls = [
        Client().post(
            "/services/oauth2/token", "grant_type=client_credentials", FORM, headers=headers
        )
        for _ in range(2)
    ]
    assert calls[0].status_code == 401
    throttled(calls[1])
