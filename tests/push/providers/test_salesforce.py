"""The platform's own app: one request a window, and what its results mean."""

import socket
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import orjson
import pytest
import time_machine

from push.providers import hourly_limit
from push.providers import salesforce as salesforce_provider
from rme.core.cache import TtlCache
from rme.core.outcomes import Accepted, Fault, Gone, Misconfigured, Rejected, Retryable, Unknown
from rme.core.redis.connection import redis_client
from tests.fakes.http1 import Http1Server, Seen, respond
from tests.fakes.tls import ca_pem, server_context
from tests.push.providers.attempts import dispatch, outcome, provider

USER, OTHER = "0055g00000AbCdE", "0055g00000AbCdF"
TYPE = "0ML000000000001AAA"
ACTION = "/services/data/v62.0/actions/standard/customNotificationAction"


def refused(*codes):
    return {"isSuccess": False, "errors": [{"statusCode": code, "message": "no"} for code in codes]}


@dataclass
class Salesforce:
    """An org: it answers by the user, else with success; `whole` answers a request as a whole."""

    answers: dict[str, Any] = field(default_factory=dict)
    whole: tuple[int, Any, dict[str, str]] | None = None
    login: tuple[int, Any] | None = None
    refused: set[str] = field(default_factory=set)
    logins: int = 0
    windows: list[list[dict[str, Any]]] = field(default_factory=list)
    server: Http1Server = field(init=False)

    def __post_init__(self) -> None:
        self.server = Http1Server(self._answer, tls=server_context())

    def settings(self, **given: Any) -> dict[str, Any]:
        return settings(self.server.port, ca_pem(), 5.0, **given)

    def _answer(self, connection: socket.socket, seen: Seen) -> None:
        if seen.path == "/services/oauth2/token":
            assert parse_qs(seen.body.decode()) == {
                "grant_type": ["client_credentials"],
                "client_id": ["id"],
                "client_secret": ["secret"],
            }
            self.logins += 1
            token = {"access_token": f"00D!{self.logins}", "instance_url": self._url}
            status, body = self.login or (200, token)
            respond(connection, status, orjson.dumps(body))
            return
        assert seen.path == ACTION
        inputs = orjson.loads(seen.body)["inputs"]
        self.windows.append(inputs)
        good = {"isSuccess": True, "errors": None}
        results = [self.answers.get(one["recipientIds"][0], good) for one in inputs]
        failed = any(not one["isSuccess"] for one in results)
        status, body, headers = self.whole or (400 if failed else 200, results, {})
        if (seen.header("Authorization") or "").removeprefix("Bearer ") in self.refused:
            status, body = 401, [{"errorCode": "INVALID_SESSION_ID", "message": "no"}]
        respond(
            connection, status, body if isinstance(body, bytes) else orjson.dumps(body), headers
        )

    @property
    def _url(self) -> str:
        return f"https://localhost:{self.server.port}"


def settings(port: int, ca: str, timeout: float, **given: Any) -> dict[str, Any]:
    return {
        "login_url": f"https://localhost:{port}",
        "client_id": "id",
        "client_secret": "secret",
        "notification_type_id": TYPE,
        "ca_pem": ca,
        "timeout": timeout,
        **given,
    }


@contextmanager
def salesforce(**given: Any):
    org = Salesforce(**given)
    with org.server:
        yield org


def made(org):
    return provider("salesforce", org.settings())


def to(number=1, token=USER, **fields):
    return dispatch(number, platform="PLATFORM", token=token, **fields)


# --- what leaves ----------------------------------------------------------------------------------
@pytest.mark.promise("push-sending-25")
def test_a_window_is_one_request(transport):
    page = '{"type":"standard__webPage","attributes":{"url":"https://x.test/"}}'
    window = [
        to(1),
        to(2, OTHER, title="", data={"recordId": "5005g0000"}),
        to(3, title="T" * 251, body="B" * 751, link="https://x.test/"),
    ]
    with salesforce() as org:
        found = made(org).send(window, transport)
        (actions,) = org.windows
    assert found == [Accepted(str(one.attempt_id)) for one in window]
    common = {"customNotifTypeId": TYPE}
    assert actions == [
        {**common, "recipientIds": [USER], "title": "Hello", "body": "Hi", "targetId": USER},
        {**common, "recipientIds": [OTHER], "title": "Hi", "body": "Hi", "targetId": "5005g0000"},
        {
            **common,
            "recipientIds": [USER],
            "title": "T" * 249 + "…",
            "body": "B" * 749 + "…",
            "targetPageRef": page,
        },
    ]


@pytest.mark.promise("push-sending-25")
def test_a_request_takes_two_hundred(transport):
    with salesforce() as org:
        found = made(org).send([to(n) for n in range(450)], transport)
        assert [len(actions) for actions in org.windows] == [200, 200, 50]
    assert {type(one) for one in found} == {Accepted}


def test_other_platforms_are_left_alone(transport):
    with salesforce() as org:
        found = outcome(made(org), transport, dispatch(platform="IOS"))
        assert (found, org.windows, org.logins) == (Retryable("serves no IOS"), [], 0)


# --- what comes back ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("ENTITY_IS_DELETED", Gone),
        ("INACTIVE_OWNER_OR_USER", Gone),
        ("INVALID_CROSS_REFERENCE_KEY", Rejected),
        ("INVALID_ID_FIELD", Rejected),
        ("MALFORMED_ID", Rejected),
        ("INSUFFICIENT_ACCESS_ON_CROSS_REFERENCE_ENTITY", Rejected),
        ("SOMETHING_NEW", Rejected),
        ("API_DISABLED_FOR_ORG", Misconfigured),
        ("FUNCTIONALITY_NOT_ENABLED", Misconfigured),
        ("INSUFFICIENT_ACCESS", Misconfigured),
        ("INSUFFICIENT_ACCESS_OR_READONLY", Misconfigured),
        ("REQUIRED_FIELD_MISSING", Fault.CONTENT),
        ("STRING_TOO_LONG", Fault.CONTENT),
        ("SERVER_UNAVAILABLE", Retryable),
        ("UNABLE_TO_LOCK_ROW", Retryable),
    ],
)
def test_result_has_the_outcome_of_the_table(transport, code, found):
    expected = Rejected(code, found) if found is Fault.CONTENT else found(code)
    with salesforce(answers={USER: refused(code, "OTHER")}) as org:
        assert made(org).send([to(1)], transport) == [expected]
        got = made(org).send([to(1), to(2, OTHER)], transport)
    # What Salesforce accepts for another user is no fault of the account.
    of_user = Rejected(code) if found is Misconfigured else expected
    assert got == [of_user, Accepted(str(to(2).attempt_id))]


def test_every_result_of_the_table_is_tried():
    tried = {row[0] for row in test_result_has_the_outcome_of_the_table.pytestmark[0].args[1]}
    assert set(salesforce_provider.RESULTS) - tried == {"LIMIT_EXCEEDED", "REQUEST_LIMIT_EXCEEDED"}


def whole(code):
    return [{"errorCode": code, "message": "no"}]


@pytest.mark.parametrize(
    ("status", "body", "found"),
    [
        (403, whole("API_DISABLED_FOR_ORG"), Misconfigured("API_DISABLED_FOR_ORG")),
        (404, whole("NOT_FOUND"), Misconfigured("NOT_FOUND")),
        (400, whole("JSON_PARSER_ERROR"), Rejected("JSON_PARSER_ERROR", Fault.CONTENT)),
        (429, b"", Retryable("answered 429", 10.0)),
        (503, b"<html>", Retryable("answered 503", 10.0)),
        (500, b"", Unknown("unexpected answer: 500")),
        (200, b"no JSON", Unknown("unexpected answer: 200")),
        (200, [], Unknown("unexpected answer: 200")),
        (200, [7], Unknown("unexpected answer: 200")),
        (200, [{"isSuccess": True}] * 2, Unknown("unexpected answer: 200")),
    ],
)
def test_answer_to_the_whole_request_has_its_outcome(transport, status, body, found):
    with salesforce(whole=(status, body, {})) as org:
        assert outcome(made(org), transport, to()) == found


@pytest.mark.promise("push-answers-17")
@pytest.mark.parametrize("code", ["REQUEST_LIMIT_EXCEEDED", "LIMIT_EXCEEDED"])
@pytest.mark.parametrize("by", ["result", "request"])
def test_reached_limit_waits_for_the_next_hour(transport, code, by):
    given = {"answers": {USER: refused(code)}}
    if by == "request":
        given = {"whole": (403, whole(code), {})}
    with salesforce(**given) as org:
        account = made(org)
        found = outcome(account, transport, to())
        held = outcome(account, transport, to(2, OTHER))
        assert len(org.windows) == 1
    to_the_hour = 3600 - time.time() % 3600
    assert isinstance(found, Retryable)
    assert found.reason == code
    assert abs(found.retry_after - to_the_hour) < 5 or to_the_hour > 3590
    assert held.reason == "the push service asked for a backoff"


# --- the log-in -----------------------------------------------------------------------------------
def test_one_log_in_serves_all(transport):
    with salesforce() as org:
        for number in range(3):
            TtlCache.clear_all()  # other processes
            outcome(made(org), transport, to(number))
        assert (org.logins, len(org.windows)) == (1, 3)


@pytest.mark.promise("push-answers-17")
def test_ended_session_is_renewed_once(transport):
    with salesforce(refused={"00D!1"}) as org:
        assert isinstance(outcome(made(org), transport, to()), Accepted)
        assert (org.logins, len(org.windows)) == (2, 2)


@pytest.mark.promise("push-answers-17")
def test_a_second_refusal_is_our_fault(transport):
    with salesforce(refused={"00D!1", "00D!2"}) as org:
        assert outcome(made(org), transport, to()) == Misconfigured("INVALID_SESSION_ID")
        assert (org.logins, len(org.windows)) == (2, 2)


@pytest.mark.parametrize(
    ("status", "body", "found"),
    [
        (400, {"error": "invalid_client"}, Misconfigured("log-in: invalid_client")),
        (503, {}, Retryable("log-in: 503")),
        (200, {"instance_url": "x"}, Misconfigured("log-in: 200")),
    ],
)
def test_nothing_is_sent_without_a_session(transport, status, body, found):
    with salesforce(login=(status, body)) as org:
        assert outcome(made(org), transport, to()) == found
        assert org.windows == []


# --- the hour -------------------------------------------------------------------------------------
@pytest.mark.promise("push-sending-25")
def test_push_above_the_hourly_limit_waits(transport, redis):
    with salesforce() as org:
        account = made(org)
        assert (
            hourly_limit.take(
                account.credential_name,
                salesforce_provider.HOURLY_LIMIT - 1,
                salesforce_provider.HOURLY_LIMIT,
            )
            == 0
        )
        assert isinstance(outcome(account, transport, to(1)), Accepted)
        waits = outcome(account, transport, to(2))
        assert len(org.windows) == 1
    assert isinstance(waits, Retryable)
    assert waits.reason == "the hourly limit is reached"
    assert 3500 < waits.retry_after <= 3660


@pytest.fixture
def minute():
    """Return the number of the present minute, whose thirtieth second does not pass."""
    with time_machine.travel(1_800_000_030, tick=False):
        yield 1_800_000_030 // 60


@pytest.mark.promise("push-sending-25")
def test_an_hour_counts_its_last_sixty_minutes(redis, minute):
    counts = {minute - 61: 50, minute - 60: 7, minute - 1: 2, minute: 1}
    redis.hset("rme:push:hour:x", mapping=counts)
    assert hourly_limit.take("x", 91, 100) > 0
    assert hourly_limit.take("x", 90, 100) == 0
    assert redis.hgetall("rme:push:hour:x") == {
        b"%d" % (minute - 60): b"7",
        b"%d" % (minute - 1): b"2",
        b"%d" % minute: b"91",
    }
    assert hourly_limit.take("x", 1, 100) == 30  # the oldest minute's count ends with this one
    assert 0 < redis_client().ttl("rme:push:hour:x") <= 3720
