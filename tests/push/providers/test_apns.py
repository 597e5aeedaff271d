"""APNs: what leaves, over which connection, and with which token."""

import time

import orjson
import pytest
import time_machine
from pydantic import ValidationError

from push.providers import access_tokens, apns
from rme.core.cache import TtlCache
from rme.core.outcomes import Accepted, Fault, Gone, Misconfigured, Rejected, Retryable
from rme.core.redis.connection import redis_client
from tests.fakes.apns import KEY, apple
from tests.push.providers.apns_scene import OTHER, TOKEN, made
from tests.push.providers.attempts import EVERYTHING, dispatch, outcome


# --- what leaves ----------------------------------------------------------------------------------
@pytest.mark.promise("push-sending-13")
def test_a_push_is_written_as_apple_wants_it(transport):
    with apple() as service:
        found = outcome(made(service), transport, dispatch(1, **EVERYTHING))
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


@pytest.mark.promise("push-sending-13")
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
        assert isinstance(outcome(made(service), transport, dispatch(**fields)), Accepted)
        assert service.seen[0].headers.get(name) == value


@pytest.mark.promise("push-sending-15")
def test_the_sandbox_is_another_host(transport):
    with apple() as production, apple() as sandbox:
        both = made(production, sandbox_url=sandbox.url)
        found = both.send([dispatch(1), dispatch(2, environment="SANDBOX")], transport)
        assert [type(one) for one in found] == [Accepted, Accepted]
        assert (len(production.seen), len(sandbox.seen)) == (1, 1)


@pytest.mark.promise("push-sending-10", "push-sending-26")
def test_a_window_shares_a_connection_and_a_token(transport):
    with apple() as service:
        window = [dispatch(number) for number in range(1, 51)]
        for _ in range(2):
            found = made(service).send(window, transport)
            assert {type(one) for one in found} == {Accepted}
        assert (len(service.seen), service.server.connections) == (100, 1)
        assert len(service.provider_tokens) == 1


@pytest.mark.promise("push-sending-8")
def test_keys_have_their_own_connections(transport):
    with apple() as service:
        one, two = made(service), made(service, key_id="OTHER12345")
        for number in range(2):
            for account in (one, two):
                assert isinstance(outcome(account, transport, dispatch(number)), Accepted)
        assert set(service.keys.values()) == {KEY, "OTHER12345"}
        assert service.server.connections == 2


@pytest.mark.promise("push-answers-5")
@pytest.mark.parametrize(
    ("status", "reason"), [(400, "IdleTimeout"), (403, "UnrelatedKeyIdInToken"), (503, "Shutdown")]
)
def test_connection_error_is_retried_on_another_connection(transport, status, reason):
    with apple(**{TOKEN: (status, {"reason": reason})}) as service:
        account = made(service)
        assert outcome(account, transport, dispatch(1)) == Retryable(reason)
        assert isinstance(outcome(account, transport, dispatch(2, token=OTHER)), Accepted)
        assert isinstance(outcome(account, transport, dispatch(3, token=OTHER)), Accepted)
        assert [seen.connection for seen in service.seen] == [0, 1, 1]


@pytest.mark.promise("push-answers-10")
def test_too_many_provider_tokens_make_no_new_one(transport):
    refusal = (429, {"reason": "TooManyProviderTokenUpdates"})
    with apple(**{TOKEN: refusal}) as service:
        account, old = aged(service, 30)  # old enough to be renewed, were it refused
        outcome(account, transport, dispatch(1))
        redis_client().delete(f"rme:push:hold:{account.throttle_key(dispatch())}")
        outcome(account, transport, dispatch(2, token=OTHER))
        assert service.provider_tokens == {old}


@pytest.mark.parametrize("token", ["simulator-bounce", "../../x", "AB" * 32, "ab" * 31, ""])
def test_malformed_token_is_not_sent(transport, token):
    with apple() as service:
        content = dispatch(1)._replace(content=apns.Push(token, "IOS", "T", "B"))
        assert outcome(made(service), transport, content) == Gone("BadDeviceToken")
        assert service.seen == []


@pytest.mark.promise("push-sending-14")
def test_too_large_payload_is_rejected_before_sending(transport):
    with apple() as service:
        account = made(service)
        fits, more = dispatch(1, body="x" * 4033), dispatch(2, body="x" * 4034)
        found = account.send([fits, more], transport)
        assert [len(seen.body) for seen in service.seen] == [4096]
    assert isinstance(found[0], Accepted)
    assert found[1] == Rejected("4097 bytes; at most 4096 can be pushed", Fault.CONTENT)


def test_other_platforms_are_left_alone(transport):
    with apple() as service:
        found = outcome(made(service), transport, dispatch(platform="ANDROID"))
        assert (found, service.seen) == (Retryable("serves no ANDROID"), [])


# --- the provider token ---------------------------------------------------------------------------
def aged(service, minutes):
    """Return an account with a token of an age in minutes, and that token."""
    account, then = made(service), time.time() - 60 * minutes
    with time_machine.travel(then, tick=False):
        old = access_tokens.AccessToken(account.sign().text, then)
    access_tokens.store(account.credential_name, apns.TOKEN_LIFE, old)
    TtlCache.clear_all()  # it comes from Redis
    return account, old.text


@pytest.mark.promise("push-sending-11")
@pytest.mark.parametrize(("minutes", "renewed"), [(0, False), (39, False), (41, True), (56, True)])
def test_a_token_is_renewed_by_its_age(transport, minutes, renewed):
    with apple() as service:
        account, old = aged(service, minutes)
        outcome(account, transport, dispatch())
        assert (old not in service.provider_tokens) is renewed


@pytest.mark.promise("push-sending-11", "push-answers-4")
@pytest.mark.parametrize(("minutes", "renewed"), [(19, False), (21, True)])
def test_an_expired_token_is_renewed_when_it_is_old_enough(transport, minutes, renewed):
    with apple() as service:
        account, old = aged(service, minutes)
        service.expired.add(old)
        found = account.send([dispatch(1), dispatch(2)], transport)
        tried = len(service.seen)
    if renewed:
        assert ([type(one) for one in found], tried) == ([Accepted, Accepted], 4)
    else:
        assert (found, tried) == ([Misconfigured("ExpiredProviderToken")] * 2, 2)


@pytest.mark.promise("push-answers-4")
def test_rejected_new_token_is_our_misconfiguration(transport):
    with apple(**{TOKEN: (403, {"reason": "ExpiredProviderToken"})}) as service:
        account, _ = aged(service, 30)
        assert outcome(account, transport, dispatch()) == Misconfigured("ExpiredProviderToken")
        assert (len(service.seen), len(service.provider_tokens)) == (2, 2)


@pytest.mark.promise("push-sending-10")
def test_the_token_names_its_key(transport):
    import jwt

    with apple() as service:
        outcome(made(service), transport, dispatch())
        (text,) = service.provider_tokens
    assert jwt.get_unverified_header(text) == {"alg": "ES256", "kid": KEY}


# --- settings -------------------------------------------------------------------------------------
@pytest.mark.promise("push-sending-9")
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
def test_invalid_settings_are_rejected(given):
    from tests.fakes.apns import settings

    with pytest.raises(ValidationError) as refused:
        apns.ApnsSettings.model_validate({**settings(1, "", 5.0), **given})
    assert "PRIVATE KEY" not in str(refused.value)
