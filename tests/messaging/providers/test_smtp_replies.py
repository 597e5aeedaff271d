import pytest

from rme.core.outcomes import Accepted, Fault, Rejected, Retryable, Unknown
from rme.transport import Transport
from tests.fakes import smtp, tcp
from tests.fakes.smtp import SmtpServer
from tests.fakes.tls import ca_pem, server_context
from tests.messaging.providers.accounts import (
    CONTENT,
    DEAD,
    ELSEWHERE,
    LATER,
    MESSAGE_LATER,
    RECIPIENT,
    SET_UP,
    email_dispatch,
    kind_of,
    outcome_of,
    provider,
)


@pytest.mark.parametrize(
    ("stage", "reply", "expected"),
    [
        ("GREETING", "421 4.3.2 going down", LATER),
        ("GREETING", "554 5.3.2 no service", LATER),
        ("GREETING", "521 no mail here", LATER),
        ("MAIL", "421 going down", LATER),
        ("MAIL", "451 4.7.1 greylisted", LATER),
        ("MAIL", "452 4.3.1 disk full", LATER),
        ("MAIL", "530 5.7.0 log in first", SET_UP),
        ("MAIL", "550 5.7.1 you may not send as this", MESSAGE_LATER),
        ("MAIL", "553 5.1.8 no such domain", MESSAGE_LATER),
        ("MAIL", "501 5.1.7 bad sender", ELSEWHERE),
        ("MAIL", "553 malformed address", ELSEWHERE),
        ("MAIL", "552 5.3.4 too big", CONTENT),
        ("MAIL", "552 too big", CONTENT),
        ("RCPT", "450 4.2.0 greylisted", MESSAGE_LATER),
        ("RCPT", "450 mailbox busy", MESSAGE_LATER),
        ("RCPT", "452 4.2.2 mailbox full", MESSAGE_LATER),
        ("RCPT", "550 5.1.1 no such user", DEAD),
        ("RCPT", "550-5.1.1 no such user\n550 5.1.1 really", DEAD),
        ("RCPT", "550 no such user", DEAD),
        ("RCPT", "550 5.1.2 bad host", DEAD),
        ("RCPT", "501 5.1.3 bad address", ELSEWHERE),
        ("RCPT", "551 5.1.6 moved", DEAD),
        ("RCPT", "551 not local", ELSEWHERE),
        ("RCPT", "553 name not allowed", ELSEWHERE),
        ("RCPT", "556 5.1.10 null MX", DEAD),
        ("RCPT", "550 5.2.1 disabled", DEAD),
        ("RCPT", "552 5.2.2 mailbox full", RECIPIENT),
        ("RCPT", "552 storage full", RECIPIENT),
        ("RCPT", "550 5.4.4 no route", ELSEWHERE),
        ("RCPT", "550 5.7.1 policy", MESSAGE_LATER),
        ("RCPT", "554 no", ELSEWHERE),
        ("RCPT", "501 syntax", ELSEWHERE),
        ("RCPT", "550 Blocked - see https://www.spamhaus.org/query/ip/192.0.2.1", LATER),
        ("RCPT", "550 Domain x has exceeded the max emails per hour", LATER),
        ("RCPT", "550 Administrative prohibition", MESSAGE_LATER),
        ("RCPT", "550-5.2.1 receiving mail at a rate\n550 5.2.1 that prevents it", MESSAGE_LATER),
        ("RCPT", "550 5.1.0 Sender denied", MESSAGE_LATER),
        ("RCPT", "550 SPF check failed", MESSAGE_LATER),
        ("RCPT", "550 Please turn on SMTP Authentication", SET_UP),
        ("RCPT", "553 sorry, not in my list of allowed rcpthosts (#5.7.1)", SET_UP),
        ("RCPT", "554 5.7.1 <to@x.test>: Relay access denied", SET_UP),
        ("RCPT", "550 relaying denied", SET_UP),
        ("RCPT", "530 5.7.0 log in first", SET_UP),
        ("DATA", "451 4.3.0 later", LATER),
        ("DATA", "554 5.5.1 no valid recipients", CONTENT),
        ("DATA", "550 5.1.1 no such user", DEAD),
        ("END", "421 4.3.2 going down", LATER),
        ("END", "451 4.7.1 try again", LATER),
        ("END", "452 4.3.1 disk full", LATER),
        ("END", "550 5.1.1 no such user", DEAD),
        ("END", "552 5.2.2 mailbox full", RECIPIENT),
        ("END", "552 5.2.3 too long", CONTENT),
        ("END", "552 5.3.4 too big", CONTENT),
        ("END", "554 5.6.0 malformed", CONTENT),
        ("END", "550 5.7.1 spam", CONTENT),
        ("END", "554 spam", CONTENT),
        ("END", "550 5.7.26 unauthenticated mail", MESSAGE_LATER),
        ("END", "550 5.7.23 SPF", MESSAGE_LATER),
        ("END", "550 5.4.5 Daily user sending limit exceeded", LATER),
        ("END", "550 5.4.6 Unusual sending activity", LATER),
        ("END", "354 what?", (Unknown,)),
        ("END", "250 2.0.0 queued", (Accepted,)),
        ("END", "251 taken", (Accepted,)),
    ],
)
def test_reply_has_the_outcome_of_the_table(
    transport: Transport, stage: str, reply: str, expected: tuple[object, ...]
) -> None:
    assert kind_of(outcome_of(transport, {stage: reply})) == expected


@pytest.mark.parametrize(
    ("own", "stage", "reply", "expected"),
    [
        ({}, "MAIL", "550 5.7.1 Sender address rejected", MESSAGE_LATER),
        ({"bounce_address": "b@y.test"}, "MAIL", "550 5.7.1 Sender address rejected", SET_UP),
        ({"bounce_address": "b@y.test"}, "MAIL", "553 malformed address", SET_UP),
        (
            {"bounce_address": "b@y.test"},
            "RCPT",
            "550 5.7.1 Sender address rejected",
            MESSAGE_LATER,
        ),
        ({}, "RCPT", "554 5.7.1 Relay access denied", SET_UP),
        (
            {"username": "u", "password": "p", "security": "TLS", "ca_pem": ca_pem()},
            "RCPT",
            "554 5.7.1 Relay access denied",
            LATER,
        ),
    ],
)
def test_reply_caused_by_account_settings_is_the_accounts_fault(
    transport: Transport, own: dict[str, str], stage: str, reply: str, expected: tuple[object, ...]
) -> None:
    tls = server_context() if own.get("security") == "TLS" else None
    with SmtpServer({stage: reply}, tls=tls, offers="AUTH PLAIN") as server:
        (outcome,) = provider(server.port, **own).send([email_dispatch()], transport)
    assert kind_of(outcome) == expected


def test_reason_repeats_no_address(transport: Transport) -> None:
    outcome = outcome_of(
        transport, {"RCPT": "550-5.1.1 <to@x.test>:\n550 5.1.1 unknown, to@x.test"}
    )
    assert outcome == Rejected("550 5.1.1 … 5.1.1 unknown, …", hard=True)


@pytest.mark.parametrize("path", ["p", "p/u", "p/c", "t/o", "t/c"])
def test_reason_repeats_no_link_of_the_recipient(transport: Transport, path: str) -> None:
    token = f"{'a' * 60}.{'b' * 43}"
    outcome = outcome_of(
        transport,
        {"END": f"550 5.7.1 <https://m.test/{path}/{token}> is listed, see https://list.test/p/1"},
    )
    assert outcome == Rejected("550 5.7.1 … is listed, see https://list.test/p/1", Fault.CONTENT)


@pytest.mark.parametrize("stage", ["GREETING", "EHLO", "MAIL", "RCPT", "DATA", "END"])
@pytest.mark.parametrize("what", [smtp.close, tcp.reset, tcp.stall, smtp.garbage])
def test_lost_connection_is_unknown_only_after_the_message(
    transport: Transport, stage: str, what: smtp.Step
) -> None:
    expected = Unknown if stage == "END" else Retryable
    silent = tcp.TIME_OUT if stage == "END" else 0.4
    timeout = silent if what is tcp.stall else 5
    assert isinstance(outcome_of(transport, {stage: what}, timeout=timeout), expected)
