import pytest

from rme.core.outcomes import Accepted, Rejected, Retryable, Unknown
from rme.transport import Transport
from tests.fakes import smtp, tcp
from tests.messaging.providers.accounts import (
    CONTENT,
    DEAD,
    LATER,
    RECIPIENT,
    SET_UP,
    kind_of,
    outcome_of,
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
        ("MAIL", "550 5.7.1 you may not send as this", SET_UP),
        ("MAIL", "553 5.1.8 no such domain", SET_UP),
        ("MAIL", "501 5.1.7 bad sender", SET_UP),
        ("MAIL", "552 5.3.4 too big", CONTENT),
        ("MAIL", "552 too big", CONTENT),
        ("RCPT", "450 4.2.0 greylisted", LATER),
        ("RCPT", "450 mailbox busy", LATER),
        ("RCPT", "452 4.2.2 mailbox full", LATER),
        ("RCPT", "550 5.1.1 no such user", DEAD),
        ("RCPT", "550-5.1.1 no such user\n550 5.1.1 really", DEAD),
        ("RCPT", "550 no such user", DEAD),
        ("RCPT", "550 5.1.2 bad host", DEAD),
        ("RCPT", "501 5.1.3 bad address", DEAD),
        ("RCPT", "551 5.1.6 moved", DEAD),
        ("RCPT", "551 not local", DEAD),
        ("RCPT", "553 name not allowed", DEAD),
        ("RCPT", "556 5.1.10 null MX", DEAD),
        ("RCPT", "550 5.2.1 disabled", DEAD),
        ("RCPT", "552 5.2.2 mailbox full", RECIPIENT),
        ("RCPT", "552 storage full", RECIPIENT),
        ("RCPT", "550 5.4.4 no route", RECIPIENT),
        ("RCPT", "550 5.7.1 policy", RECIPIENT),
        ("RCPT", "554 no", RECIPIENT),
        ("RCPT", "501 syntax", RECIPIENT),
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
        ("END", "550 5.7.26 unauthenticated mail", SET_UP),
        ("END", "550 5.7.23 SPF", SET_UP),
        ("END", "354 what?", (Unknown,)),
        ("END", "250 2.0.0 queued", (Accepted,)),
        ("END", "251 taken", (Accepted,)),
    ],
)
def test_reply_means_what_the_table_says(
    transport: Transport, stage: str, reply: str, expected: tuple[object, ...]
) -> None:
    assert kind_of(outcome_of(transport, {stage: reply})) == expected


def test_reason_repeats_no_address(transport: Transport) -> None:
    outcome = outcome_of(
        transport, {"RCPT": "550-5.1.1 <to@x.test>:\n550 5.1.1 unknown, to@x.test"}
    )
    assert outcome == Rejected("550 5.1.1 … 5.1.1 unknown, …", hard=True)


@pytest.mark.parametrize("stage", ["GREETING", "EHLO", "MAIL", "RCPT", "DATA", "END"])
@pytest.mark.parametrize("what", [smtp.close, tcp.reset, tcp.stall, smtp.garbage])
def test_lost_connection_is_unknown_only_after_the_message(
    transport: Transport, stage: str, what: smtp.Step
) -> None:
    expected = Unknown if stage == "END" else Retryable
    silent = tcp.TIME_OUT if stage == "END" else 0.4
    timeout = silent if what is tcp.stall else 5
    assert isinstance(outcome_of(transport, {stage: what}, timeout=timeout), expected)
