"""Web Push: what leaves, and what the answers mean."""

import time
from base64 import urlsafe_b64encode
from hashlib import sha256

import pytest
from pydantic import ValidationError

from push.providers.webpush import WebPushSettings
from rme.core.outcomes import Accepted, Fault, Gone, Misconfigured, Rejected, Retryable, Unknown
from rme.core.redis.connection import redis_client
from rme.transport import Transport
from tests.fakes.webpush import push_service
from tests.push.providers.attempts import EVERYTHING, dispatch, outcome, provider
from tests.push.subscriptions import Browser

TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
KEY_MISMATCH = b'{"reason":"VapidPkHashMismatch"}'


def made(service, **given):
    return provider("webpush", service.settings(**given))


def to(browser, number=1, **fields):
    return dispatch(number, platform="WEB", token=browser.text, **fields)


# --- what leaves ----------------------------------------------------------------------------------
@pytest.mark.promise("push-sending-19", "push-sending-20", "push-sending-23")
def test_push_is_encrypted_for_its_browser(transport):
    with push_service() as service:
        browser = service.browser()
        found = outcome(made(service), transport, to(browser, **EVERYTHING))
        (seen,) = service.seen
        claims = service.claims(seen)
    assert found == Accepted("/m/1")
    assert service.read(seen, browser) == {
        "title": "Hello",
        "body": "Hi",
        "data": {"order": "7"},
        "badge": 3,
        "image": "https://x.test/a.png",
        "link": "https://x.test/",
        "tag": "order-7",
    }
    del seen.headers["authorization"], seen.headers[":authority"]
    assert seen.headers == {
        ":method": "POST",
        ":path": "/device",
        ":scheme": "https",
        "content-encoding": "aes128gcm",
        "content-type": "application/octet-stream",
        "content-length": str(len(seen.body)),
        "ttl": "60",
        "urgency": "high",
        "topic": urlsafe_b64encode(sha256(b"order-7").digest()).decode()[:32],
    }
    assert claims["sub"] == "mailto:ops@example.com"
    assert 0 < claims["exp"] - time.time() <= 24 * 3600


def test_a_traced_push_passes_its_context_on(transport):
    with push_service() as service:
        traced = to(service.browser())._replace(traceparent=TRACEPARENT)
        outcome(made(service), transport, traced)
        (seen,) = service.seen
    assert seen.headers["traceparent"] == TRACEPARENT


@pytest.mark.promise("push-sending-19")
@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({}, "ttl", "86400"),
        ({"ttl": 0}, "ttl", "0"),
        ({"priority": "NORMAL"}, "urgency", "normal"),
        ({}, "topic", None),
    ],
)
def test_headers_follow_the_notification(transport, fields, name, value):
    with push_service() as service:
        found = outcome(made(service), transport, to(service.browser(), **fields))
        assert isinstance(found, Accepted)
        assert service.seen[0].headers.get(name) == value


@pytest.mark.promise("push-sending-21", "push-sending-26")
def test_a_window_shares_a_connection_and_a_signature(transport):
    with push_service() as service:
        browser = service.browser()
        for _ in range(2):
            found = made(service).send([to(browser, n) for n in range(1, 51)], transport)
            assert found == [Accepted("/m/1")] * 50
        assert (len(service.seen), service.server.connections) == (100, 1)
        assert len({seen.headers["authorization"] for seen in service.seen}) == 1
        assert len({bytes(seen.body) for seen in service.seen}) == 100


@pytest.mark.promise("push-sending-20")
def test_each_origin_has_its_own_signature(transport):
    with push_service() as one, push_service() as two:
        account = made(one)
        account.send([to(one.browser(), 1), to(two.browser(), 2)], transport)
        first, second = (
            one.claims(one.seen[0]),
            two.claims(two.seen[0]),
        )  # each checks whom it is for
    assert [first["aud"], second["aud"]] == [
        f"https://localhost:{s.server.port}" for s in (one, two)
    ]


@pytest.mark.promise("push-sending-22")
def test_too_large_payload_is_rejected_before_sending(transport):
    overhead = len(b'{"title":"Hello","body":""}')
    with push_service() as service:
        browser = service.browser()
        sizes = [3900 - overhead, 3901 - overhead]
        window = [to(browser, n, body="x" * size) for n, size in enumerate(sizes, 1)]
        found = made(service).send(window, transport)
        assert [len(seen.body) for seen in service.seen] == [86 + 3900 + 17]
    too_large = Rejected("3901 bytes; at most 3900 can be pushed", Fault.CONTENT)
    assert found == [Accepted("/m/1"), too_large]


@pytest.mark.promise("devices-17")
@pytest.mark.parametrize(
    ("endpoint", "why"),
    [
        ("https://example.com/x", "the endpoint is not of a push service that is known here"),
        ("http://fcm.googleapis.com/x", "the endpoint must be an https address"),
        ("https://fcm.googleapis.com:444/x", "the endpoint must be on port 443"),
        ("https://[::1/x", "the endpoint must be an https address"),
    ],
)
def test_stored_endpoint_is_checked_again_before_sending(transport, endpoint, why):
    with push_service() as service:
        assert outcome(made(service), transport, to(Browser(endpoint))) == Gone(why)


def test_name_resolving_into_our_network_is_not_called(redis):
    inside = Transport(resolve=["evil.notify.windows.com:443:10.0.0.1"])
    with push_service() as service:
        found = outcome(made(service), inside, to(Browser("https://evil.notify.windows.com/x")))
    inside.close()
    assert found == Gone("the endpoint's address is not public")


def test_other_platforms_are_left_alone(transport):
    with push_service() as service:
        found = outcome(made(service), transport, dispatch(platform="IOS"))
        assert (found, service.seen) == (Retryable("serves no IOS"), [])


@pytest.mark.parametrize("token", ["nonsense", "{}", "[]", '{"endpoint": 7}'])
def test_malformed_subscription_is_gone(transport, token):
    with push_service() as service:
        found = outcome(made(service), transport, dispatch(platform="WEB", token=token))
        assert found == Gone("the endpoint must be an https address")


# --- what comes back ------------------------------------------------------------------------------
def status_reason(status):
    return f"the push service answered {status}"


@pytest.mark.promise("push-answers-14")
@pytest.mark.parametrize(
    ("status", "body", "found"),
    [
        (201, b"", Accepted("")),
        (202, b"", Accepted("")),
        (404, b"", Gone(status_reason(404))),
        (410, b"", Gone(status_reason(410))),
        (400, KEY_MISMATCH, Gone("subscribed with another key")),
        (400, b"bad request", Rejected(status_reason(400), Fault.CONTENT)),
        (413, b"", Rejected(status_reason(413), Fault.CONTENT)),
        (401, b"invalid JWT provided", Misconfigured(status_reason(401))),
        (401, b"VAPID public key mismatch", Gone("subscribed with another key")),
        (403, b"expired", Misconfigured(status_reason(403))),
        (
            403,
            b"the VAPID credentials in the authorization header do not correspond to the "
            b"credentials used to create the subscriptions.",
            Gone("subscribed with another key"),
        ),
        (406, b"", Retryable(status_reason(406), 10.0, blames_account=False)),
        (429, b"", Retryable(status_reason(429), 10.0, blames_account=False)),
        (301, b"", Retryable(status_reason(301))),
        (307, b"", Retryable(status_reason(307))),
        (500, b"", Retryable(status_reason(500))),
        (502, b"", Retryable(status_reason(502))),
        (503, b"", Retryable(status_reason(503))),
        (200, b"", Unknown("unexpected answer: 200")),
        (418, b"", Unknown("unexpected answer: 418")),
    ],
)
def test_answer_has_the_outcome_of_the_table(transport, status, body, found):
    with push_service(device=(status, body, {})) as service:
        assert outcome(made(service), transport, to(service.browser())) == found
        assert len(service.seen) == 1


@pytest.mark.promise("push-answers-15")
def test_host_asking_to_back_off_is_not_called_while_others_are(transport):
    with push_service(device=(429, b"", {"retry-after": "120"})) as slow, push_service() as other:
        account = made(slow)
        asked = outcome(account, transport, to(slow.browser()))
        window = [to(slow.browser("fine"), 2), to(other.browser(), 3)]
        held, taken = account.send(window, transport)
        assert len(slow.seen) == 1
    assert asked == Retryable(status_reason(429), 120.0, blames_account=False)
    assert isinstance(held, Retryable)
    assert 100 < held.retry_after <= 120
    assert isinstance(taken, Accepted)


def test_backoff_ends_after_an_hour_at_the_latest(transport):
    with push_service(device=(429, b"", {"retry-after": "999999"})) as service:
        account = made(service)
        outcome(account, transport, to(service.browser()))
        key = account.throttle_key(to(service.browser()))
    assert redis_client().pttl(f"rme:push:hold:{key}") <= 3600 * 1000


@pytest.mark.promise("push-sending-9")
@pytest.mark.parametrize("subject", ["", "ops@example.com", "mailto:x", "http://example.com"])
def test_invalid_subject_is_rejected(subject):
    with pytest.raises(ValidationError):
        WebPushSettings.model_validate({"subject": subject})
