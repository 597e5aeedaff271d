"""Signatures against the library of Standard Webhooks."""

import json
import re
from base64 import b64decode
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from messaging.webhooks import signatures

# The example of the rules' own library.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"test": 2432232314}'


def headers(keys, body=BODY, at=None, identifier="msg_1"):
    at = at or datetime.now(UTC)
    timestamp = int(at.timestamp())
    return {
        "webhook-id": identifier,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signatures.sign(keys, identifier, timestamp, body),
    }


def test_a_signature_equals_the_librarys():
    at = datetime(2021, 3, 12, tzinfo=UTC)
    own = signatures.sign([SECRET], "msg_p5jXN8AQM9LWM0D4loKWxJek", int(at.timestamp()), BODY)
    assert own == Webhook(SECRET).sign("msg_p5jXN8AQM9LWM0D4loKWxJek", at, BODY.decode())
    assert re.fullmatch(r"v1,[A-Za-z0-9+/]{43}=", own)


def test_signature_equals_the_standard_webhooks_example():
    """The example in the rules' tests: id, time, body and what they come to."""
    signature = signatures.sign([SECRET], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, BODY)
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    "body", [b"{}", '{"a":"é☃𝄞"}'.encode(), b'{"a":"' + b"x" * 100_000 + b'"}']
)
def test_any_body_is_verified(body):
    key = signatures.new_secret()
    assert Webhook(key).verify(body, headers([key], body)) == json.loads(body)


def test_each_secret_signs():
    former, present = signatures.new_secret(), signatures.new_secret()
    for key in (former, present):
        assert Webhook(key).verify(BODY, headers([present, former])) == json.loads(BODY)


@pytest.mark.parametrize("field", ["webhook-id", "webhook-timestamp", "body", "secret"])
def test_a_changed_request_is_not_verified(field):
    key = signatures.new_secret()
    given = headers([key])
    if field == "webhook-timestamp":
        given[field] = str(int(given[field]) + 1)
    elif field == "webhook-id":
        given[field] = "msg_2"
    body = b"{}" if field == "body" else BODY
    with pytest.raises(WebhookVerificationError):
        Webhook(signatures.new_secret() if field == "secret" else key).verify(body, given)


def test_an_old_signature_is_not_verified():
    key = signatures.new_secret()
    with pytest.raises(WebhookVerificationError):
        Webhook(key).verify(BODY, headers([key], at=datetime.now(UTC) - timedelta(minutes=6)))


def test_secrets_are_long_and_differ():
    made = {signatures.new_secret() for _ in range(100)}
    assert len(made) == 100
    assert {len(b64decode(key.removeprefix("whsec_"))) for key in made} == {32}
