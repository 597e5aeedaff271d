"""Checks of push accounts: what is asked, which delivers nothing, and what the answers say."""

import orjson
import pytest

from push import vapid
from push.providers.apns import NO_DEVICE
from rme.core.outcomes import Accepted, Misconfigured, Retryable
from tests.fakes.apns import apple
from tests.fakes.fcm import google
from tests.push.providers import apns_scene
from tests.push.providers.attempts import provider


@pytest.mark.parametrize(
    ("status", "reason", "outcome"),
    [
        (400, "BadDeviceToken", Accepted()),
        (400, "TopicDisallowed", Misconfigured("TopicDisallowed")),
        (400, "DeviceTokenNotForTopic", Misconfigured("DeviceTokenNotForTopic")),
        (400, "PayloadEmpty", Misconfigured("PayloadEmpty")),
        (403, "InvalidProviderToken", Misconfigured("InvalidProviderToken")),
        (403, "ExpiredProviderToken", Misconfigured("ExpiredProviderToken")),
        (429, "TooManyProviderTokenUpdates", Retryable("TooManyProviderTokenUpdates")),
        (503, "ServiceUnavailable", Retryable("ServiceUnavailable")),
        (418, "Teapot", Retryable("unexpected answer: 418")),
    ],
)
def test_check_with_an_invalid_device_verifies_key_and_topic(transport, status, reason, outcome):
    with apple(**{NO_DEVICE: (status, {"reason": reason})}) as service:
        assert apns_scene.made(service).check(transport) == outcome
        (seen,) = service.seen
    assert seen.headers[":path"] == f"/3/device/{NO_DEVICE}"
    assert seen.headers["apns-topic"] == "com.example.app"


@pytest.mark.parametrize(
    ("status", "code", "outcome"),
    [
        (200, "", Accepted("projects/example-project/messages/1")),
        (400, "INVALID_ARGUMENT", Misconfigured("INVALID_ARGUMENT")),
        (403, "PERMISSION_DENIED", Misconfigured("PERMISSION_DENIED")),
        (404, "NOT_FOUND", Misconfigured("NOT_FOUND")),
        (429, "QUOTA_EXCEEDED", Retryable("QUOTA_EXCEEDED")),
        (503, "UNAVAILABLE", Retryable("UNAVAILABLE")),
    ],
)
def test_check_sends_google_a_validate_only_message(transport, status, code, outcome):
    refused = {"check": (status, {"error": {"status": code}})} if code else {}
    with google(**refused) as service:
        assert provider("fcm", service.settings()).check(transport) == outcome
        (seen,) = service.sent
    assert orjson.loads(bytes(seen.body)) == {
        "validate_only": True,
        "message": {"topic": "check", "notification": {"title": "Check"}},
    }


def test_service_account_rejected_by_google_is_reported_before_any_message(transport):
    with google() as service:
        service.login = (400, {"error": "invalid_grant"})
        outcome = provider("fcm", service.settings()).check(transport)
    assert (outcome, service.sent) == (Misconfigured("log-in: invalid_grant"), [])


def test_web_push_needs_the_deployments_key(transport, settings):
    made = provider("webpush", {"subject": "mailto:ops@example.com"})
    assert made.check(transport) == Accepted()
    vapid._headers.clear()
    settings.VAPID_PRIVATE_KEY = "short"
    refused = Misconfigured("VAPID_PRIVATE_KEY must be 32 bytes in base64url")
    assert made.check(transport) == refused
