"""APNs: what leaves, and what each of its answers means."""

import time
from datetime import UTC, datetime, timedelta

import orjson
import pytest
import time_machine
from pydantic import ValidationError

from push import tokens
from push.senders import apns
from rme.core import bell
from rme.core.cache import TtlCache
from rme.core.outcomes import (
    Accepted,
    Fault,
    Gone,
    Misconfigured,
    Rejected,
    Retryable,
    Unknown,
)
from tests.fakes.apns import KEY, apple
from tests.push.shots import outcome, sender, shot

TOKEN = "ab" * 32
OTHER = "cd" * 32
MS = 1_700_000_000_000


def made(service, **given):
    return sender("apns", service.settings(**given))


def prove(service, transport, **fields):
    """Let the credential have succeeded once."""
    taken = outcome(made(service), transport, shot(9, token=OTHER, **fields))
    assert isinstance(taken, Accepted)


# --- what leaves ----------------------------------------------------------------------------------
def test_a_push_is_written_as_apple_wants_it(transport):
    content = {
        "data": {"order": "7"},
        "badge": 3,
        "image": "https://x.test/a.png",
        "link": "https://x.test/",
        "ttl": 60,
        "collapse_key": "order-7",
    }
    with apple() as service:
        found = outcome(made(service), transport, shot(1, **content))
        (seen,) = service.seen
    assert found == Accepted("00000000-0000-0000-0000-000000000001")
    expires = int(seen.headers.pop("apns-expiration"))
    assert 0 <= time.time() + 60 - expires < 10
    del seen.headers["authorization"], seen.headers[":authority"]
    assert seen.headers == {
        ":method": "POST",
        ":path": f"/3/device/{TOKEN}",
        ":scheme": "https",
        "apns-id": "00000000-0000-0000-0000-000000000001",
        "apns-topic": "com.example.app",
        "apns-push-type": "alert",
        "apns-priority": "10",
        "apns-collapse-id": "order-7",
        "content-length": str(len(seen.body)),
    }
    assert orjson.loads(bytes(seen.body)) == {
        "aps": {
            "alert": {"title": "Hello", "body": "Hi"},
            "sound": "default",
            "badge": 3,
            "mutable-content": 1,
        },
        "data": {"order": "7"},
        "image": "https://x.test/a.png",
        "link": "https://x.test/",
    }


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({"priority": "NORMAL"}, "apns-priority", "5"),
        ({"title": "", "body": ""}, "apns-push-type", "background"),
        ({"title": "", "body": ""}, "apns-priority", "5"),
        ({"app": "com.example.other"}, "apns-topic", "com.example.other"),
        ({"ttl": 0}, "apns-expiration", "0"),
        ({}, "apns-collapse-id", None),
        ({"collapse_key": "k" * 64}, "apns-collapse-id", "k" * 64),
        (
            {"collapse_key": "\u00e9"},
            "apns-collapse-id",
            "4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c",
        ),
    ],
)
def test_headers_follow_the_notification(transport, fields, name, value):
    with apple() as service:
        assert isinstance(outcome(made(service), transport, shot(**fields)), Accepted)
        assert service.seen[0].headers.get(name) == value


def test_the_sandbox_is_another_host(transport):
    with apple() as production, apple() as sandbox:
        both = made(production, sandbox_url=sandbox.url)
        found = both.send([shot(1), shot(2, environment="SANDBOX")], transport)
        assert [type(one) for one in found] == [Accepted, Accepted]
        assert (len(production.seen), len(sandbox.seen)) == (1, 1)


def test_a_window_shares_a_connection_and_a_token(transport):
    with apple() as service:
        window = [shot(number) for number in range(1, 51)]
        for _ in range(2):
            found = made(service).send(window, transport)
            assert {type(one) for one in found} == {Accepted}
        assert (len(service.seen), service.server.connections) == (100, 1)
        assert len(service.provider_tokens) == 1


def test_keys_side_by_side_have_connections_of_their_own(transport):
    with apple() as service:
        one, two = made(service), made(service, key_id="OTHER12345")
        for number in range(2):
            for account in (one, two):
                assert isinstance(outcome(account, transport, shot(number)), Accepted)
        assert set(service.keys.values()) == {KEY, "OTHER12345"}
        assert service.server.connections == 2


@pytest.mark.parametrize(
    ("status", "reason"),
    [(400, "IdleTimeout"), (403, "UnrelatedKeyIdInToken"), (503, "Shutdown")],
)
def test_what_is_wrong_with_the_connection_is_tried_again_on_another(transport, status, reason):
    with apple(**{TOKEN: (status, {"reason": reason})}) as service:
        account = made(service)
        assert outcome(account, transport, shot(1)) == Retryable(reason)
        assert isinstance(outcome(account, transport, shot(2, token=OTHER)), Accepted)
        assert isinstance(outcome(account, transport, shot(3, token=OTHER)), Accepted)
        assert [seen.connection for seen in service.seen] == [0, 1, 1]


def test_too_many_provider_tokens_make_no_new_one(transport):
    refusal = (429, {"reason": "TooManyProviderTokenUpdates"})
    with apple(**{TOKEN: refusal}) as service:
        account, old = aged(service, 30)  # old enough to be renewed, were it refused
        outcome(account, transport, shot(1))
        bell.client().delete(f"rme:push:hold:{account.lane(shot())}")
        outcome(account, transport, shot(2, token=OTHER))
        assert service.provider_tokens == {old}


@pytest.mark.parametrize("token", ["simulator-bounce", "../../x", "AB" * 32, "ab" * 31, ""])
def test_what_is_no_token_does_not_leave(transport, token):
    with apple() as service:
        content = shot(1)._replace(content=apns.Notification(token, "IOS", "T", "B"))
        assert outcome(made(service), transport, content) == Gone("BadDeviceToken")
        assert service.seen == []


def test_a_payload_is_measured_before_it_leaves(transport):
    with apple() as service:
        account = made(service)
        fits, more = shot(1, body="x" * 4033), shot(2, body="x" * 4034)
        found = account.send([fits, more], transport)
        assert [len(seen.body) for seen in service.seen] == [4096]
    assert isinstance(found[0], Accepted)
    assert found[1] == Rejected("4097 bytes; at most 4096 can be pushed", Fault.CONTENT)


def test_other_platforms_are_left_alone(transport):
    with apple() as service:
        found = outcome(made(service), transport, shot(platform="ANDROID"))
        assert (found, service.seen) == (Retryable("serves no ANDROID"), [])


# --- what comes back ------------------------------------------------------------------------------
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
def test_a_refusal_means_what_the_table_says(transport, status, reason, kind):
    with apple(**{TOKEN: (status, {"reason": reason})}) as service:
        assert outcome(made(service), transport, shot()) == expected(kind, reason)


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
def test_what_may_work_later(transport, status, reason, found):
    with apple(**{TOKEN: (status, {"reason": reason})}) as service:
        assert outcome(made(service), transport, shot()) == found


def test_every_row_of_the_table_is_tried():
    tried = {
        (row[0], row[1])
        for test in (test_a_refusal_means_what_the_table_says, test_what_may_work_later)
        for row in test.pytestmark[0].args[1]
    }
    others = {(403, "ExpiredProviderToken"), (410, "Unregistered"), (410, "ExpiredToken")}
    assert set(apns.ANSWERS) <= tried | others


@pytest.mark.parametrize("reason", ["BadDeviceToken", "DeviceTokenNotForTopic"])
def test_a_refused_token_is_dead_once_the_credential_has_succeeded(transport, reason):
    with apple(**{TOKEN: (400, {"reason": reason})}) as service:
        prove(service, transport)
        TtlCache.clear_all()  # another process knows it too
        assert outcome(made(service), transport, shot()) == Gone(reason)


def test_a_success_in_the_same_window_counts(transport):
    with apple(**{TOKEN: (400, {"reason": "BadDeviceToken"})}) as service:
        found = made(service).send([shot(1), shot(2, token=OTHER)], transport)
    assert found == [Gone("BadDeviceToken"), Accepted("00000000-0000-0000-0000-000000000002")]


@pytest.mark.parametrize(
    ("reason", "proven"),
    [
        ("BadDeviceToken", {"environment": "SANDBOX"}),
        ("DeviceTokenNotForTopic", {"app": "com.example.other"}),
        ("DeviceTokenNotForTopic", {"environment": "SANDBOX"}),
    ],
)
def test_what_succeeded_elsewhere_proves_nothing(transport, reason, proven):
    with apple(**{TOKEN: (400, {"reason": reason})}) as service:
        prove(service, transport, **proven)
        assert outcome(made(service), transport, shot()) == Misconfigured(reason)


@pytest.mark.parametrize("reason", ["Unregistered", "ExpiredToken"])
@pytest.mark.parametrize(
    ("registered", "dead"), [(None, True), (-1000, True), (0, True), (1, False), (1000, False)]
)
def test_a_token_is_dead_unless_it_registered_since(transport, reason, registered, dead):
    died = datetime.fromtimestamp(MS / 1000, UTC)
    at = None if registered is None else died + timedelta(milliseconds=registered)
    with apple(**{TOKEN: (410, {"reason": reason, "timestamp": MS})}) as service:
        found = outcome(made(service), transport, shot(registered_at=at))
    again = Retryable(f"{reason}, before the device registered again", blames_account=False)
    assert found == (Gone(reason, MS) if dead else again)


@pytest.mark.parametrize("timestamp", ["x", None, -1, 2**60, 1.5])
def test_a_time_of_death_that_is_none_does_not_count(transport, timestamp):
    said = {"reason": "Unregistered", "timestamp": timestamp}
    with apple(**{TOKEN: (410, said)}) as service:
        assert outcome(made(service), transport, shot()) == Gone("Unregistered", None)


def test_who_asks_for_patience_is_left_alone(transport):
    with apple(**{TOKEN: (503, {"reason": "ServiceUnavailable"})}) as service:
        account = made(service)
        outcome(account, transport, shot())
        held = outcome(account, transport, shot(2, token=OTHER))
        sandbox = outcome(account, transport, shot(3, token=OTHER, environment="SANDBOX"))
        assert len(service.seen) == 2
    assert isinstance(held, Retryable)
    assert held.reason == "the push service asked for patience"
    assert 0 < held.retry_after <= 1.0
    assert isinstance(sandbox, Accepted)


def test_patience_doubles_and_ends_with_the_first_success(transport):
    with apple(**{TOKEN: (503, {"reason": "ServiceUnavailable"})}) as service:
        account = made(service)
        lane = account.lane(shot())
        waits = []
        for number in range(1, 5):
            outcome(account, transport, shot(number))
            waits.append(bell.client().pttl(f"rme:push:hold:{lane}"))
            bell.client().delete(f"rme:push:hold:{lane}")
        outcome(account, transport, shot(8, token=OTHER))
        outcome(account, transport, shot(9))
        waits.append(bell.client().pttl(f"rme:push:hold:{lane}"))
    assert [round(ms / 1000) for ms in waits] == [1, 2, 4, 8, 1]


# --- the provider token ---------------------------------------------------------------------------
def aged(service, minutes):
    """Give an account whose token was made a while ago, and that token."""
    account, then = made(service), time.time() - 60 * minutes
    with time_machine.travel(then, tick=False):
        old = tokens.Token(account._sign().text, then)
    tokens.keep(account._name, apns.TOKEN_LIFE, old)
    TtlCache.clear_all()  # it comes from Redis
    return account, old.text


@pytest.mark.parametrize(("minutes", "renewed"), [(0, False), (39, False), (41, True), (56, True)])
def test_a_token_is_renewed_by_its_age(transport, minutes, renewed):
    with apple() as service:
        account, old = aged(service, minutes)
        outcome(account, transport, shot())
        assert (old not in service.provider_tokens) is renewed


@pytest.mark.parametrize(("minutes", "renewed"), [(19, False), (21, True)])
def test_an_expired_token_is_renewed_when_it_is_old_enough(transport, minutes, renewed):
    with apple() as service:
        account, old = aged(service, minutes)
        service.expired.add(old)
        found = account.send([shot(1), shot(2)], transport)
        tried = len(service.seen)
    if renewed:
        assert ([type(one) for one in found], tried) == ([Accepted, Accepted], 4)
    else:
        assert (found, tried) == ([Misconfigured("ExpiredProviderToken")] * 2, 2)


def test_a_new_token_that_is_refused_too_is_our_fault(transport):
    with apple(**{TOKEN: (403, {"reason": "ExpiredProviderToken"})}) as service:
        account, _ = aged(service, 30)
        assert outcome(account, transport, shot()) == Misconfigured("ExpiredProviderToken")
        assert (len(service.seen), len(service.provider_tokens)) == (2, 2)


def test_the_token_names_its_key(transport):
    import jwt

    with apple() as service:
        outcome(made(service), transport, shot())
        (text,) = service.provider_tokens
    assert jwt.get_unverified_header(text) == {"alg": "ES256", "kid": KEY}


# --- settings -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "given",
    [
        {"team_id": "short"},
        {"key_id": "lower12345"},
        {"private_key": "no key"},
        {"topic": "a b"},
        {"timeout": 26},
        {"unknown": 1},
    ],
)
def test_settings_that_cannot_be_meant_are_refused(given):
    from tests.fakes.apns import settings

    with pytest.raises(ValidationError) as refused:
        apns.ApnsSettings.model_validate({**settings(1, "", 5.0), **given})
    assert "PRIVATE KEY" not in str(refused.value)
