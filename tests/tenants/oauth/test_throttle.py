"""How often the token endpoint may be called, and by whom it cannot be closed to others."""

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from django.test import Client

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
