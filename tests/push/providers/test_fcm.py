"""FCM: what leaves, and what each of its answers means."""

import orjson
import pytest
from pydantic import ValidationError

from push.providers.fcm import FcmSettings
from rme.core.cache import TtlCache
from rme.core.outcomes import Accepted, Fault, Gone, Misconfigured, Rejected, Retryable, Unknown
from tests.fakes.fcm import account, google
from tests.push.providers.attempts import EVERYTHING, dispatch, outcome, provider

TOKEN = "token-1"
FID = "cGx7Qm2sTkyWvR9b0aZ1-_"


def made(service):
    return provider("fcm", service.settings())


def to(number=1, token=TOKEN, **fields):
    return dispatch(number, platform="ANDROID", token=token, **fields)


def failure(code, status, *violations):
    details = [
        {"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": code},
        {
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"field": field, "description": "no"} for field in violations],
        },
    ]
    return {"error": {"code": 0, "message": "no", "status": status, "details": details}}


# --- what leaves ----------------------------------------------------------------------------------
@pytest.mark.promise("push-sending-17")
def test_a_push_is_written_as_google_wants_it(transport):
    with google() as service:
        found = outcome(made(service), transport, to(**EVERYTHING))
        (seen,) = service.sent
    assert found == Accepted("projects/example-project/messages/1")
    assert seen.headers["authorization"] == "Bearer access-1"
    assert orjson.loads(bytes(seen.body)) == {
        "message": {
            "token": TOKEN,
            "notification": {"title": "Hello", "body": "Hi", "image": "https://x.test/a.png"},
            "data": {"order": "7", "link": "https://x.test/"},
            "android": {
                "priority": "HIGH",
                "ttl": "60s",
                "collapse_key": "order-7",
                "notification": {"tag": "order-7", "notification_count": 3},
            },
        }
    }


@pytest.mark.promise("push-sending-17")
def test_push_may_have_minimal_content(transport):
    with google() as service:
        outcome(made(service), transport, to(token=FID, title="", priority="NORMAL"))
        (seen,) = service.sent
    assert orjson.loads(bytes(seen.body))["message"] == {
        "fid": FID,
        "notification": {"body": "Hi"},
        "data": {},
        "android": {"priority": "NORMAL"},
    }


def test_keys_reserved_by_google_are_left_out(transport):
    reserved = {"from": "x", "message_type": "x", "google.a": "x", "gcm.n.e": "1"}
    free = {"From": "1", "from_city": "2", "googles": "3", "gcm": "4"}
    with google() as service:
        outcome(made(service), transport, to(data={**reserved, **free}, link=""))
        (seen,) = service.sent
    assert orjson.loads(bytes(seen.body))["message"]["data"] == free


@pytest.mark.promise("push-sending-18")
def test_too_large_payload_is_rejected_before_sending(transport):
    overhead = len(b'{"notification":{"title":"Hello","body":""},"data":{}}')
    with google() as service:
        sizes = [4096 - overhead, 4097 - overhead]
        window = [to(n, body="x" * size) for n, size in enumerate(sizes, 1)]
        found = made(service).send(window, transport)
        assert len(service.sent) == 1
    assert isinstance(found[0], Accepted)
    assert found[1] == Rejected("4097 bytes; at most 4096 can be pushed", Fault.CONTENT)


def test_other_platforms_are_left_alone(transport):
    with google() as service:
        found = outcome(made(service), transport, dispatch(platform="IOS"))
        assert (found, service.sent, service.logins) == (Retryable("serves no IOS"), [], 0)


# --- what comes back ------------------------------------------------------------------------------
@pytest.mark.promise("push-answers-11", "push-answers-13")
@pytest.mark.parametrize(
    ("status", "body", "found"),
    [
        (404, failure("UNREGISTERED", "NOT_FOUND"), Gone("UNREGISTERED")),
        (404, {"error": {"status": "NOT_FOUND"}}, Misconfigured("NOT_FOUND")),
        (404, b"no such page", Misconfigured("no error code")),
        (
            400,
            failure("INVALID_ARGUMENT", "INVALID_ARGUMENT", "message.token"),
            Gone("INVALID_ARGUMENT"),
        ),
        (
            400,
            failure("INVALID_ARGUMENT", "INVALID_ARGUMENT", "message.fid"),
            Gone("INVALID_ARGUMENT"),
        ),
        (
            400,
            failure("INVALID_ARGUMENT", "INVALID_ARGUMENT", "message.data[0].value"),
            Rejected("INVALID_ARGUMENT", Fault.CONTENT),
        ),
        (
            400,
            failure("INVALID_ARGUMENT", "INVALID_ARGUMENT"),
            Rejected("INVALID_ARGUMENT", Fault.CONTENT),
        ),
        (413, b"", Rejected("no error code", Fault.CONTENT)),
        (403, failure("SENDER_ID_MISMATCH", "PERMISSION_DENIED"), Gone("SENDER_ID_MISMATCH")),
        (
            401,
            failure("THIRD_PARTY_AUTH_ERROR", "UNAUTHENTICATED"),
            Rejected("THIRD_PARTY_AUTH_ERROR", Fault.ROUTE),
        ),
        (429, failure("QUOTA_EXCEEDED", "RESOURCE_EXHAUSTED"), Retryable("QUOTA_EXCEEDED", 60.0)),
        (500, failure("INTERNAL", "INTERNAL"), Retryable("INTERNAL", 10.0)),
        (503, failure("UNAVAILABLE", "UNAVAILABLE"), Retryable("UNAVAILABLE", 10.0)),
        (418, b"", Unknown("unexpected answer: 418")),
        (302, b"", Unknown("unexpected answer: 302")),
        (200, b"no JSON", Accepted("")),
    ],
)
def test_answer_has_the_outcome_of_the_table(transport, status, body, found):
    with google(**{TOKEN: (status, body)}) as service:
        assert outcome(made(service), transport, to()) == found


@pytest.mark.promise("push-answers-13")
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_of_the_service_is_honored(transport, status):
    body = failure("LATER", "LATER")
    with google(**{TOKEN: (status, body, {"retry-after": "7"})}) as service:
        account = made(service)
        assert outcome(account, transport, to()) == Retryable("LATER", 7.0)
        held = outcome(account, transport, to(2, token="other"))
        assert (held.reason, len(service.sent)) == ("the push service asked for a backoff", 1)


@pytest.mark.promise("push-answers-11")
@pytest.mark.parametrize(
    "details", [None, "x", [], [7], [{"fieldViolations": 7}], [{"fieldViolations": [7]}]]
)
def test_error_with_malformed_details_is_a_content_rejection(transport, details):
    body = {"error": {"status": "INVALID_ARGUMENT", "details": details}}
    with google(**{TOKEN: (400, body)}) as service:
        found = outcome(made(service), transport, to())
    assert found == Rejected("INVALID_ARGUMENT", Fault.CONTENT)


# --- the access token -----------------------------------------------------------------------------
@pytest.mark.promise("push-sending-16")
def test_an_access_token_is_asked_for_once(transport):
    with google() as service:
        for number in range(3):
            TtlCache.clear_all()  # other processes
            outcome(made(service), transport, to(number))
        assert (service.logins, len(service.sent)) == (1, 3)


@pytest.mark.promise("push-sending-16")
def test_short_lived_access_token_is_renewed_in_time(transport):
    with google() as service:
        service.life = 300
        outcome(made(service), transport, to(1))
        outcome(made(service), transport, to(2))
        assert service.logins == 2


@pytest.mark.promise("push-answers-12")
def test_a_refused_access_token_is_renewed_once(transport):
    with google() as service:
        outcome(made(service), transport, to(1))
        service.refused.add("access-1")
        found = made(service).send([to(2), to(3)], transport)
        assert ([type(one) for one in found], service.logins) == ([Accepted, Accepted], 2)


@pytest.mark.promise("push-answers-12")
def test_a_second_refusal_is_our_fault(transport):
    body = failure("", "PERMISSION_DENIED")
    with google(**{TOKEN: (403, body)}) as service:
        found = made(service).send([to(1), to(2, token="other")], transport)
        assert (service.logins, len(service.sent)) == (2, 3)
    assert found[0] == Misconfigured("PERMISSION_DENIED")
    assert isinstance(found[1], Accepted)


@pytest.mark.parametrize(
    ("status", "body", "found"),
    [
        (400, {"error": "invalid_grant"}, Misconfigured("log-in: invalid_grant")),
        (401, {}, Misconfigured("log-in: 401")),
        (429, {}, Retryable("log-in: 429")),
        (503, {}, Retryable("log-in: 503")),
        (200, {"access_token": 7}, Misconfigured("log-in: 200")),
        (200, [], Misconfigured("log-in: 200")),
    ],
)
def test_nothing_is_sent_without_a_token(transport, status, body, found):
    with google() as service:
        service.login = (status, body)
        assert outcome(made(service), transport, to()) == found
        assert service.sent == []


@pytest.mark.promise("push-sending-9")
@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "{}",
        account(1, private_key="no key"),
        account(1, project_id="a/b"),
        account(1, token_uri=7),
    ],
    ids=["no-json", "empty", "no-key", "project", "token-uri"],
)
def test_invalid_service_account_is_rejected(text):
    with pytest.raises(ValidationError) as refused:
        FcmSettings.model_validate({"service_account_json": text})
    assert "PRIVATE KEY" not in str(refused.value)
