"""What an SMSC delivers: receipts in all their forms, and what people wrote."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from messaging.providers.smpp import Smpp
from rme.core.addresses import Digits
from rme.core.outcomes import Accepted, OptOut
from rme.core.provider import CallbackRequest, DeliveryReceipt, InboundSms, SmsPart, UnknownCode
from rme.transport.smpp import Address, Pdu, ShortMessage
from rme.transport.smpp.pdu import CommandId, Tag
from tests.fakes import NO_TRANSPORT

PERSON, OURS = Address("12025550123", 1, 1), Address("12025550100", 1, 1)
FROM_PERSON, ABROAD = (PERSON.text, OURS.text), Digits.INTERNATIONAL
TEXT = "id:{} sub:001 dlvrd:001 submit date:2611211200 done date:2611211201 stat:{} err:{} text:x"


def provider(**given: Any) -> Smpp:
    settings = {"host": "h", "system_id": "esme", "password": "p", **given}
    return Smpp(Smpp.Settings.model_validate(settings))


def call(body: bytes) -> CallbackRequest:
    return CallbackRequest("", "LINK", "", {}, body, datetime.now(UTC))


def read(message: ShortMessage, **given: Any) -> list[DeliveryReceipt | InboundSms]:
    return list(provider(**given).read_callback(call(message.encode())))


def receipt(text: str = "", **parameters: bytes) -> ShortMessage:
    named = {Tag[name.upper()]: value for name, value in parameters.items()}
    return ShortMessage(PERSON, OURS, text.encode(), 0x04, parameters=named)


@pytest.mark.parametrize(
    ("stat", "error", "expected"),
    [
        ("DELIVRD", "000", DeliveryReceipt(None, "delivered", "DELIVRD 000", provider_id="abc")),
        ("delivrd", "000", DeliveryReceipt(None, "delivered", "delivrd 000", provider_id="abc")),
        ("UNDELIV", "027", DeliveryReceipt(None, "failed", "UNDELIV 027", provider_id="abc")),
        ("UNDELIV", "001", DeliveryReceipt(None, "bounced", "UNDELIV 001", provider_id="abc")),
        ("DELIVRD", "001", DeliveryReceipt(None, "delivered", "DELIVRD 001", provider_id="abc")),
        (
            "REJECTD",
            "900",
            DeliveryReceipt(None, "failed", "REJECTD 900", provider_id="abc", opt_out=OptOut.STOP),
        ),
        (
            "EXPIRED",
            "099",
            DeliveryReceipt(None, "failed", "EXPIRED 099", soft=True, provider_id="abc"),
        ),
        ("REJECTD", "099", DeliveryReceipt(None, "failed", "REJECTD 099", provider_id="abc")),
        ("DELETED", "099", DeliveryReceipt(None, "failed", "DELETED 099", provider_id="abc")),
        ("ACCEPTD", "000", DeliveryReceipt(None, "sent", "ACCEPTD 000", provider_id="abc")),
        ("ENROUTE", "000", None),
        ("UNKNOWN", "000", None),
        ("SOMETHING", "000", UnknownCode("SOMETHI")),
    ],
)
def test_receipt_as_text(
    stat: str, error: str, expected: DeliveryReceipt | UnknownCode | None
) -> None:
    found = read(receipt(TEXT.format("ABC", stat, error)), dead_errors=["001"], stop_errors=["900"])
    assert found == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("state", "kind"),
    [(2, "delivered"), (3, "failed"), (4, "failed"), (5, "failed"), (6, "sent"), (8, "failed")],
)
def test_receipt_by_parameters(state: int, kind: str) -> None:
    message = receipt(receipted_message_id=b"ABC\0", message_state=bytes([state]))
    assert read(message) == [DeliveryReceipt(None, kind, None, soft=state == 3, provider_id="abc")]


def test_state_missing_from_the_table_is_an_unknown_code() -> None:
    message = receipt(receipted_message_id=b"A\0", message_state=b"\xff")
    assert read(message) == [UnknownCode("255")]


@pytest.mark.parametrize("state", [0, 1, 7, 9])
def test_intermediate_state_is_ignored(state: int) -> None:
    assert read(receipt(receipted_message_id=b"A\0", message_state=bytes([state]))) == []


def test_parameters_go_before_the_text() -> None:
    message = receipt(
        TEXT.format("other", "UNDELIV", "1"), receipted_message_id=b"A", message_state=b"\2"
    )
    assert read(message) == [DeliveryReceipt(None, "delivered", "UNDELIV 1", provider_id="a")]


def test_the_first_of_a_field_counts() -> None:
    """A person's text stands at the end, and may look like a receipt."""
    text = TEXT.format("1", "UNDELIV", "2").replace("text:x", "text:stat:DELIVRD id:9")
    assert read(receipt(text)) == [DeliveryReceipt(None, "failed", "UNDELIV 2", provider_id="1")]


@pytest.mark.parametrize(
    ("ids", "answered", "reported", "same"),
    [
        ("SAME", "0ABC", "0abc", "abc"),
        ("SAME", "123456", "0000123456", "123456"),
        ("SAME", "0000123456", "123456", "123456"),
        ("SAME", "00AB", "ab", "ab"),
        ("SAME", "0000", "0", "0"),
        ("SAME", " 12 ", "0000000012", "12"),
        ("HEX_IN_RESPONSES", "1E240", "0000123456", "123456"),
        ("HEX_IN_RESPONSES", "1F", "31", "31"),
        ("HEX_IN_RESPONSES", "0000001f", "0000000031", "31"),
        ("HEX_IN_RECEIPTS", "31", "1F", "31"),
        ("HEX_IN_RESPONSES", "no-hex", "no-hex", "no-hex"),
    ],
)
def test_ids_are_the_same_in_answers_and_receipts(
    ids: str, answered: str, reported: str, same: str
) -> None:
    own = provider(message_ids=ids)
    answer = Pdu(CommandId.SUBMIT_SM, 1).answer(0, f"{answered}\0".encode())
    assert own._outcome(answer) == Accepted(same)
    (found,) = own.read_callback(call(receipt(TEXT.format(reported, "DELIVRD", "000")).encode()))
    assert replace(found, former_provider_id="") == DeliveryReceipt(
        None, "delivered", "DELIVRD 000", provider_id=same
    )
    message = receipt(receipted_message_id=answered.encode(), message_state=b"\2")
    (found,) = own.read_callback(call(message.encode()))
    assert replace(found, former_provider_id="") == DeliveryReceipt(
        None, "delivered", None, provider_id=same
    )


@pytest.mark.parametrize("text", ["", "stat:DELIVRD", "id: stat:", "id:1", "hello"])
def test_receipt_without_id_or_state_is_ignored(text: str) -> None:
    assert read(receipt(text)) == []


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (ShortMessage(PERSON, OURS, b"STOP"), InboundSms(*FROM_PERSON, "STOP", digits=ABROAD)),
        (ShortMessage(Address("12025550123"), OURS, b"stop"), InboundSms(*FROM_PERSON, "stop")),
        (
            ShortMessage(PERSON, OURS, "СТОП".encode("utf-16-be"), data_coding=8),
            InboundSms(*FROM_PERSON, "СТОП", digits=ABROAD),
        ),
        (
            ShortMessage(PERSON, OURS, b"\5\0\3\1\2\1STOP", esm_class=0x40),
            InboundSms(*FROM_PERSON, "STOP", part=SmsPart(1, 2, 1), digits=ABROAD),
        ),
        (
            ShortMessage(PERSON, OURS, b"STOP", payload=True),
            InboundSms(*FROM_PERSON, "STOP", digits=ABROAD),
        ),
        (ShortMessage(Address("Bank", 5), OURS, b"Hi"), InboundSms("Bank", "12025550100", "Hi")),
        (
            ShortMessage(Address("4915112345", 2, 1), OURS, b"STOP"),
            InboundSms("4915112345", "12025550100", "STOP", digits=Digits.NATIONAL),
        ),
    ],
    ids=["plain", "no-type", "ucs2", "header", "payload", "name", "national"],
)
def test_inbound_sms_is_read(message: ShortMessage, expected: InboundSms) -> None:
    assert read(message) == [expected]


@pytest.mark.parametrize("esm_class", [0x08, 0x10, 0x18])
def test_other_message_kinds_are_ignored(esm_class: int) -> None:
    assert read(ShortMessage(PERSON, OURS, b"id:1 stat:DELIVRD", esm_class)) == []


@given(st.binary(max_size=120), st.integers(0, 255), st.sampled_from([0, 1, 3, 4, 8, 255]))
def test_malformed_message_is_not_read(junk: bytes, esm_class: int, coding: int) -> None:
    message = ShortMessage(PERSON, OURS, junk, esm_class, coding)
    callbacks = [
        callback
        for body in (junk, message.encode())
        for callback in provider(message_ids="HEX_IN_RECEIPTS").read_callback(call(body))
    ]
    assert {type(callback) for callback in callbacks} <= {DeliveryReceipt, InboundSms}
    words = [each.text if isinstance(each, InboundSms) else each.provider_id for each in callbacks]
    assert [text for text in words if "\0" in text] == []


def test_http_calls_are_never_authentic() -> None:
    assert not provider().is_authentic(
        call(receipt(TEXT.format("1", "DELIVRD", "0")).encode()), NO_TRANSPORT
    )
