"""APNs: what each of its answers means."""

from datetime import UTC, datetime, timedelta

import pytest

from push.providers import apns
from rme.core.cache import TtlCache
from rme.core.outcomes import Accepted, Fault, Gone, Misconfigured, Rejected, Retryable, Unknown
from rme.core.redis.connection import redis_client
from tests.fakes.apns import apple
from tests.push.providers.apns_scene import OTHER, TOKEN, made
from tests.push.providers.attempts import dispatch, outcome

MS = 1_700_000_000_000


def prove(service, transport, **fields):
    """Let the credential have succeeded once."""
    taken = outcome(made(service), transport, dispatch(9, token=OTHER, **fields))
    assert isinstance(taken, Accepted)


CONFIG, PAYLOAD = "CONFIG", "PAYLOAD"


def expected(kind, reason):
    return Misconfigured(reason) if kind == CONFIG else Rejected(reason, Fault.CONTENT)


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (400, "BadDeviceToken", CONFIG),  # nothing has succeeded yet
        (400, "DeviceTokenNotForTopic", CONFIG),
        (400, "TopicDisallowed", CONFIG),
        (400, "BadTopic", CONFIG),
        (400, "MissingTopic", CONFIG),
        (400, "BadCollapseId", PAYLOAD),
        (400, "BadExpirationDate", PAYLOAD),
        (400, "BadMessageId", PAYLOAD),
        (400, "BadPriority", PAYLOAD),
        (400, "InvalidPushType", PAYLOAD),
        (400, "DuplicateHeaders", PAYLOAD),
        (400, "MissingDeviceToken", PAYLOAD),
        (400, "PayloadEmpty", PAYLOAD),
        (400, "SomethingNew", PAYLOAD),
        (403, "InvalidProviderToken", CONFIG),
        (403, "MissingProviderToken", CONFIG),
        (403, "BadCertificate", CONFIG),
        (403, "BadCertificateEnvironment", CONFIG),
        (403, "BadEnvironmentKeyIdInToken", CONFIG),
        (403, "Forbidden", CONFIG),
        (403, "SomethingNew", CONFIG),
        (404, "BadPath", CONFIG),
        (405, "MethodNotAllowed", CONFIG),
        (413, "PayloadTooLarge", PAYLOAD),
    ],
)
def test_rejection_has_the_outcome_of_the_table(transport, status, reason, kind):
    with apple(**{TOKEN: (status, {"reason": reason})}) as service:
        assert outcome(made(service), transport, dispatch()) == expected(kind, reason)


@pytest.mark.parametrize(
    ("status", "reason", "found"),
    [
        (400, "IdleTimeout", Retryable("IdleTimeout")),
        (403, "UnrelatedKeyIdInToken", Retryable("UnrelatedKeyIdInToken")),
        (429, "TooManyProviderTokenUpdates", Retryable("TooManyProviderTokenUpdates", 60.0)),
        (429, "TooManyRequests", Retryable("TooManyRequests", 60.0, blames_account=False)),
        (500, "InternalServerError", Retryable("InternalServerError", 900.0)),
        (503, "ServiceUnavailable", Retryable("ServiceUnavailable", 900.0)),
        (503, "Shutdown", Retryable("Shutdown")),
        (302, "Elsewhere", Unknown("unexpected answer: 302")),
    ],
)
def test_temporary_error_is_retryable(transport, status, reason, found):
    with apple(**{TOKEN: (status, {"reason": reason})}) as service:
        assert outcome(made(service), transport, dispatch()) == found


@pytest.mark.promise("push-answers-1")
def test_every_row_of_the_table_is_tried():
    tried = {
        (row[0], row[1])
        for test in (test_rejection_has_the_outcome_of_the_table, test_temporary_error_is_retryable)
        for row in test.pytestmark[0].args[1]
    }
    others = {(403, "ExpiredProviderToken"), (410, "Unregistered"), (410, "ExpiredToken")}
    assert set(apns.ANSWERS) <= tried | others


@pytest.mark.promise("push-answers-2")
@pytest.mark.parametrize("reason", ["BadDeviceToken", "DeviceTokenNotForTopic"])
def test_a_refused_token_is_dead_once_the_credential_has_succeeded(transport, reason):
    with apple(**{TOKEN: (400, {"reason": reason})}) as service:
        prove(service, transport)
        TtlCache.clear_all()  # another process knows it too
        assert outcome(made(service), transport, dispatch()) == Gone(reason)


@pytest.mark.promise("push-answers-2")
def test_a_success_in_the_same_window_counts(transport):
    with apple(**{TOKEN: (400, {"reason": "BadDeviceToken"})}) as service:
        found = made(service).send([dispatch(1), dispatch(2, token=OTHER)], transport)
    assert found == [Gone("BadDeviceToken"), Accepted("00000000-0000-0000-0000-000000000002")]


@pytest.mark.promise("push-answers-2")
@pytest.mark.parametrize(
    ("reason", "proven"),
    [
        ("DeviceTokenNotForTopic", {"app": "com.example.other"}),
        ("DeviceTokenNotForTopic", {"environment": "SANDBOX"}),
    ],
)
def test_success_in_another_app_or_environment_proves_nothing(transport, reason, proven):
    with apple(**{TOKEN: (400, {"reason": reason})}) as service:
        prove(service, transport, **proven)
        assert outcome(made(service), transport, dispatch()) == Misconfigured(reason)


def test_token_of_an_unproven_environment_is_a_route_failure(transport):
    with apple(**{TOKEN: (400, {"reason": "BadDeviceToken"})}) as service:
        prove(service, transport, environment="SANDBOX")
        found = outcome(made(service), transport, dispatch())
    assert found == Rejected("BadDeviceToken", Fault.ROUTE)


@pytest.mark.promise("push-answers-3")
@pytest.mark.parametrize("reason", ["Unregistered", "ExpiredToken"])
@pytest.mark.parametrize(
    ("registered", "dead"), [(None, True), (-1000, True), (0, True), (1, False), (1000, False)]
)
def test_a_token_is_dead_unless_it_registered_since(transport, reason, registered, dead):
    died = datetime.fromtimestamp(MS / 1000, UTC)
    at = None if registered is None else died + timedelta(milliseconds=registered)
    with apple(**{TOKEN: (410, {"reason": reason, "timestamp": MS})}) as service:
        found = outcome(made(service), transport, dispatch(registered_at=at))
    again = Retryable(f"{reason}, before the device registered again", blames_account=False)
    assert found == (Gone(reason, MS) if dead else again)


@pytest.mark.parametrize("timestamp", ["x", None, -1, 2**60, 1.5])
def test_invalid_time_of_death_is_ignored(transport, timestamp):
    body = {"reason": "Unregistered", "timestamp": timestamp}
    with apple(**{TOKEN: (410, body)}) as service:
        assert outcome(made(service), transport, dispatch()) == Gone("Unregistered", None)


def test_credential_told_to_back_off_is_not_used(transport):
    with apple(**{TOKEN: (503, {"reason": "ServiceUnavailable"})}) as service:
        account = made(service)
        # Refused five times before, it is held for long enough, however slow this machine is.
        redis_client().set(f"rme:push:strikes:{account.throttle_key(dispatch())}", 5)
        outcome(account, transport, dispatch())
        held = outcome(account, transport, dispatch(2, token=OTHER))
        sandbox = outcome(account, transport, dispatch(3, token=OTHER, environment="SANDBOX"))
        assert len(service.seen) == 2
    assert isinstance(held, Retryable)
    assert held.reason == "the push service asked for a backoff"
    assert 0 < held.retry_after <= 32.0
    assert isinstance(sandbox, Accepted)


@pytest.fixture
def holds(redis, monkeypatch):
    """Return the milliseconds for which Redis was told to hold a credential, one by one."""
    told, own = [], redis.set

    def note(name, value, **given):
        if name.startswith("rme:push:hold:"):
            told.append(given["px"])
        return own(name, value, **given)

    monkeypatch.setattr(redis, "set", note)
    return told


@pytest.mark.promise("push-answers-18")
def test_backoff_doubles_and_ends_with_the_first_success(transport, holds):
    with apple(**{TOKEN: (503, {"reason": "ServiceUnavailable"})}) as service:
        account = made(service)
        hold = f"rme:push:hold:{account.throttle_key(dispatch())}"
        for number in range(1, 5):
            outcome(account, transport, dispatch(number))
            redis_client().delete(hold)
        outcome(account, transport, dispatch(8, token=OTHER))
        outcome(account, transport, dispatch(9))
    assert holds == [1000, 2000, 4000, 8000, 1000]
