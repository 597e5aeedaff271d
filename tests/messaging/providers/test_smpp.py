"""SMPP against an SMSC of another's making, over real sockets."""

import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
import smpp34

from messaging.providers.base import Dispatch, Sms
from messaging.providers.smpp import CODES, Smpp
from rme.core import smpp
from rme.core.outcomes import Accepted, Fault, Outcome, Rejected, Retryable, Unknown
from rme.core.transport import Transport
from tests.fakes.smsc import Smsc, wait_for

TO = "+12025550123"
Send = Callable[..., list[Outcome]]


@pytest.fixture
def smsc() -> Iterator[Smsc]:
    with Smsc() as server:
        yield server
        smpp.close_all(5)


@pytest.fixture
def send(smsc: Smsc, transport: Transport) -> Send:
    def send(*texts: str, by: str = "Ann", **given: Any) -> list[Outcome]:
        window = [Dispatch(UUID(int=n), Sms(TO, t, by)) for n, t in enumerate(texts, 1)]
        return provider(smsc, **given).send(window, transport)

    return send


def provider(smsc: Smsc, **given: Any) -> Smpp:
    settings = {
        "host": "127.0.0.1",
        "port": smsc.port,
        "system_id": "esme",
        "password": "secret",
        "timeout": 5,
        **given,
    }
    return Smpp(Smpp.Settings.model_validate(settings))


def parts(smsc: Smsc) -> list[smpp34.SubmitSmEvent]:
    """Give what came in its order: the server's tasks take it in any."""
    return sorted(smsc.taken, key=lambda event: event.short_message[:6])


def test_message_arrives_as_it_was_written(smsc: Smsc, send: Send) -> None:
    assert send("Grüße: 5 € [x]") == [Accepted("m1")]
    (seen,) = smsc.taken
    assert (seen.source_addr, seen.source_addr_ton, seen.source_addr_npi) == ("Ann", 5, 0)
    assert (seen.destination_addr, seen.dest_addr_ton, seen.dest_addr_npi) == ("12025550123", 1, 1)
    assert seen.short_message == b"Gr\x7e\x1ee: 5 \x1be \x1b<x\x1b>"
    assert (seen.data_coding, seen.esm_class, seen.registered_delivery, seen.tlvs) == (0, 0, 1, [])


@pytest.mark.parametrize(
    ("sender", "given", "expected"),
    [
        ("+12025550100", {}, ("12025550100", 1, 1)),
        ("12025550100", {}, ("12025550100", 1, 1)),
        ("12345", {}, ("12345", 3, 0)),
        ("Acme Inc", {}, ("Acme Inc", 5, 0)),
        ("", {}, ("", 0, 0)),
        ("", {"sender": "Bob"}, ("Bob", 5, 0)),
        ("12345", {"source_ton": 0, "source_npi": 9}, ("12345", 0, 9)),
    ],
)
def test_sender_has_its_type(
    smsc: Smsc, send: Send, sender: str, given: dict[str, Any], expected: tuple[str, int, int]
) -> None:
    assert send("Hi", by=sender, **given) == [Accepted("m1")]
    (seen,) = smsc.taken
    assert (seen.source_addr, seen.source_addr_ton, seen.source_addr_npi) == expected


@pytest.mark.parametrize(
    ("text", "alphabet", "coding", "encoding"),
    [
        ("Жук 😀", "GSM", 8, "utf-16-be"),
        ("é€", "LATIN1", 8, "utf-16-be"),
        ("éß", "LATIN1", 3, "latin-1"),
        ("Hi", "UCS2", 8, "utf-16-be"),
    ],
)
def test_alphabets(
    smsc: Smsc, send: Send, text: str, alphabet: str, coding: int, encoding: str
) -> None:
    assert send(text, alphabet=alphabet) == [Accepted("m1")]
    (seen,) = smsc.taken
    assert (seen.data_coding, seen.short_message.decode(encoding)) == (coding, text)


def test_long_text_goes_in_parts_with_headers(smsc: Smsc, send: Send) -> None:
    text = "0123456789" * 31
    outcomes = send(text)
    seen = parts(smsc)
    assert [event.short_message[:6] for event in seen] == [
        b"\x05\0\3\x01\3" + bytes([number]) for number in (1, 2, 3)
    ]
    assert b"".join(event.short_message[6:] for event in seen) == text.encode()
    assert [len(event.short_message) for event in seen] == [159, 159, 10]
    assert [event.esm_class for event in seen] == [0x40] * 3
    assert [event.registered_delivery for event in seen] == [0, 0, 1]
    assert outcomes == [Accepted(f"m{smsc.taken.index(seen[2]) + 1}")]


def test_no_character_is_split(smsc: Smsc, send: Send) -> None:
    send("a" * 152 + "€" + "b" * 50, "ж" * 66 + "😀" + "ж" * 10)
    lengths = sorted(len(event.short_message) for event in smsc.taken)
    assert lengths == [6 + 24, 6 + 52, 6 + 132, 6 + 152]


def test_long_text_by_parameters(smsc: Smsc, send: Send) -> None:
    send("0123456789" * 31, long_messages="SAR")
    seen = sorted(smsc.taken, key=lambda event: event.tlvs[2].value)
    assert [[(t.tag, t.value) for t in event.tlvs] for event in seen] == [
        [
            (smpp34.TLV_SAR_MSG_REF_NUM, b"\0\1"),
            (smpp34.TLV_SAR_TOTAL_SEGMENTS, b"\3"),
            (smpp34.TLV_SAR_SEGMENT_SEQNUM, bytes([number])),
        ]
        for number in (1, 2, 3)
    ]
    assert b"".join(event.short_message for event in seen) == b"0123456789" * 31
    assert {event.esm_class for event in seen} == {0}


def test_long_text_as_one_payload(smsc: Smsc, send: Send) -> None:
    assert send("0123456789" * 31, long_messages="PAYLOAD") == [Accepted("m1")]
    (seen,) = smsc.taken
    assert [(t.tag, t.value) for t in seen.tlvs] == [
        (smpp34.TLV_MESSAGE_PAYLOAD, b"0123456789" * 31)
    ]
    assert (seen.short_message, seen.registered_delivery) == (b"", 1)


@pytest.mark.parametrize("code", sorted(CODES))
def test_refusal_has_its_outcome(smsc: Smsc, send: Send, code: int) -> None:
    smsc.judge = lambda event: code
    said = CODES[code].reason  # type: ignore[union-attr]
    if said in KNOWN_TO_THE_SERVER:
        assert send("Hi") == [CODES[code]]


KNOWN_TO_THE_SERVER = {name for name in dir(smpp34) if name.startswith("ESME_R")}
