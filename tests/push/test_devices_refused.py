"""Devices that are refused: what is wrong is named, and which hosts are taken."""

import pytest

from push.models import Device
from tests.push.devices_scene import BROWSER, HEX, register
from tests.push.subscriptions import Browser
from tests.rest import error

pytestmark = pytest.mark.django_db


def endpoint(url):
    return {"platform": "WEB", "token": {**BROWSER.subscription, "endpoint": url}}


def keys(**given):
    both = {**BROWSER.subscription["keys"], **given}
    return {"platform": "WEB", "token": {**BROWSER.subscription, "keys": both}}


HTTPS = "must be an https address"
HOST = "is not of a push service that is known here"
POINT = "must be a public key on P-256, base64url"
SIXTEEN = "must be 16 bytes, base64url"
SUBSCRIPTION = "must be a PushSubscription: endpoint and keys"


@pytest.mark.promise("devices-3", "devices-4", "devices-15")
@pytest.mark.parametrize(
    ("given", "field", "why"),
    [
        ({"platform": "IOS", "token": "ab" * 31}, "token", "must be hex, 64 digits or more"),
        ({"platform": "IOS", "token": "zz" * 32}, "token", "must be hex, 64 digits or more"),
        ({"platform": "IOS", "token": f"{HEX}/../x"}, "token", "must be hex, 64 digits or more"),
        ({"platform": "IOS", "token": "ab" * 2049}, "token", "must be hex, 64 digits or more"),
        ({"platform": "IOS", "token": BROWSER.subscription}, "token", "must be a string"),
        ({"platform": "ANDROID", "token": 7}, "token", "must be a string"),
        (
            {"platform": "ANDROID", "token": "a b"},
            "token",
            "must be an FCM registration token or installation id",
        ),
        ({"platform": "PLATFORM", "token": ""}, "token", "must be the platform's id of a user"),
        ({"platform": "WEB", "token": "x"}, "token", SUBSCRIPTION),
        ({"platform": "WEB", "token": None}, "token", SUBSCRIPTION),
        ({"platform": "WEB", "token": {"endpoint": "x"}}, "token", SUBSCRIPTION),
        (
            {"platform": "WEB", "token": {**BROWSER.subscription, "x": 1}},
            "token.x",
            "unknown field",
        ),
        (endpoint(None), "token.endpoint", "must be a string"),
        (endpoint("http://fcm.googleapis.com/x"), "token.endpoint", HTTPS),
        (endpoint("https://fcm.googleapis.com:8443/x"), "token.endpoint", "must be on port 443"),
        (endpoint("https://example.com/fcm.googleapis.com"), "token.endpoint", HOST),
        (endpoint("https://evilfcm.googleapis.com.example.com/"), "token.endpoint", HOST),
        (endpoint("https://evil-notify.windows.com/"), "token.endpoint", HOST),
        (endpoint("https://evilnotify.windows.com/"), "token.endpoint", HOST),
        (endpoint("https://fcm.googleapis.com@127.0.0.1/"), "token.endpoint", HTTPS),
        (endpoint("https://127.0.0.1\\@fcm.googleapis.com/"), "token.endpoint", HTTPS),
        (endpoint("https://127.0.0.1#.fcm.googleapis.com/"), "token.endpoint", HTTPS),
        (endpoint("https://fcm.googleapis.com/\u00e9"), "token.endpoint", HTTPS),
        (endpoint("https://fcm.googleapis.com/" + "x" * 2000), "token.endpoint", HTTPS),
        (keys(p256dh="AAAA"), "token.keys.p256dh", POINT),
        (keys(p256dh="B" + "A" * 86), "token.keys.p256dh", POINT),
        (keys(p256dh=7), "token.keys.p256dh", POINT),
        (keys(auth="AAAA"), "token.keys.auth", SIXTEEN),
        (keys(auth=None), "token.keys.auth", SIXTEEN),
        ({"app": "a b"}, "app", "String should match pattern '^[A-Za-z0-9._:/-]+$'"),
        ({"timeZone": "Mars/Base"}, "timeZone", "must be an IANA time zone"),
        ({"environment": "TEST"}, "environment", "Input should be 'PRODUCTION' or 'SANDBOX'"),
        ({"contactId": None, "userId": None}, "contactId", "give contactId or userId"),
        ({"name": "a\x00b"}, "name", "must not contain NUL characters"),
        ({"anything": 1}, "anything", "unknown field"),
    ],
)
def test_invalid_field_is_named(api, given, field, why):
    body = {"userId": "u1", "platform": "ANDROID", "token": "t", **given}
    answer = register(api, body)
    expected = error("INVALID_PAYLOAD", f"{field}: {why}", (field, why))
    assert (answer.status_code, answer.json()) == (400, expected)
    assert not Device.objects.exists()


@pytest.mark.promise("devices-15")
@pytest.mark.parametrize("host", ["web.push.apple.com", "wns2-par02p.notify.windows.com"])
def test_endpoints_of_known_services_are_taken(api, host):
    browser = Browser(f"https://{host}/w/?token=abc")
    answer = register(api, {"userId": "u1", "platform": "WEB", "token": browser.subscription})
    assert answer.status_code == 201


@pytest.mark.promise("devices-16")
def test_host_opened_by_the_deployment_is_accepted(api, settings):
    settings.OUTBOUND_OPEN_HOSTS = ["push.internal:8443"]
    browser = Browser("https://push.internal:8443/x")
    body = {"userId": "u1", "platform": "WEB", "token": browser.subscription}
    assert register(api, body).status_code == 201
    other = Browser("https://push.internal:8444/x")
    assert register(api, {**body, "token": other.subscription}).status_code == 400
