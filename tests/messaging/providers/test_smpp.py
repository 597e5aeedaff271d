"""SMPP against an SMSC of another's making, over real sockets."""

import socket
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
import smpp34

from messaging.providers.smpp import CODES, Smpp
from rme.core.outcomes import Accepted, Fault, Misconfigured, Outcome, Rejected, Retryable, Unknown
from rme.core.provider import Dispatch, Sms, refusals
from rme.transport import Transport, smpp
from rme.transport.smpp.pdu import CommandId, Pdu
from tests.fakes.smpp import SmppServer, refuse
from tests.fakes.smsc import Smsc, wait_for
from tests.fakes.tcp import TIME_OUT

TO = "+12025550123"
Send = Callable[..., list[Outcome]]


@pytest.fixture(autouse=True)
def _no_links() -> Iterator[None]:
    yield
    smpp.close_all(2)


@pytest.fixture
def smsc() -> Iterator[Smsc]:
    with Smsc() as server:
        yield server


@pytest.fixture
def send(smsc: Smsc, transport: Transport) -> Send:
    def send(*texts: str, by: str = "Ann", **given: Any) -> list[Outcome]:
        window = [Dispatch(str(UUID(int=n)), Sms(TO, t, by)) for n, t in enumerate(texts, 1)]
        return provider(smsc.port, **given).send(window, transport)

    return send


def dispatch(text: str, sender: str = "Ann") -> Dispatch:
    return Dispatch(str(UUID(int=1)), Sms(TO, text, sender))


def provider(port: int, **given: Any) -> Smpp:
    settings = {
        "host": "127.0.0.1",
        "port": port,
        "system_id": "esme",
        "password": "secret",
        "timeout": 5,
        **given,
    }
    return Smpp(Smpp.Settings.model_validate(settings))


def parts(smsc: Smsc) -> list[smpp34.SubmitSmEvent]:
    """Return the messages in their order: the server's tasks receive them in any."""
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
        ("Zürich", {"sender": "Bob"}, ("Bob", 5, 0)),  # a C-octet string is ASCII
        ("Zürich", {}, ("", 0, 0)),
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
def test_text_is_encoded_in_the_configured_alphabet(
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
def test_refusal_has_its_outcome(transport: Transport, code: int) -> None:
    with SmppServer({CommandId.SUBMIT_SM: refuse(code)}) as server:
        (outcome,) = provider(server.port).send([dispatch("Hi")], transport)
    assert outcome == refusals.of_message(CODES[code], dispatch("Hi").sms.sender)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (smpp34.ESME_RTHROTTLED, Retryable("ESME_RTHROTTLED")),
        (smpp34.ESME_RMSGQFUL, Retryable("ESME_RMSGQFUL")),
        (smpp34.ESME_RSYSERR, Retryable("ESME_RSYSERR")),
        (0x45, Retryable("ESME_RSUBMITFAIL", blames_account=False)),
        (smpp34.ESME_RINVDSTADR, Rejected("ESME_RINVDSTADR")),
        (0x50, Rejected("ESME_RINVDSTTON", Fault.ROUTE)),
        (0x51, Rejected("ESME_RINVDSTNPI", Fault.ROUTE)),
        (smpp34.ESME_RINVSRCADR, Rejected("ESME_RINVSRCADR", Fault.ROUTE)),  # it is named
        (smpp34.ESME_RINVMSGLEN, Rejected("ESME_RINVMSGLEN", Fault.CONTENT)),
        (smpp34.ESME_RUNKNOWNERR, Unknown("ESME_RUNKNOWNERR")),
    ],
)
def test_refusal_of_the_smsc(smsc: Smsc, send: Send, code: int, expected: Outcome) -> None:
    smsc.decide = lambda event: code
    assert send("Hi") == [expected]


def test_an_unknown_code_is_a_refusal_for_now(transport: Transport) -> None:
    with SmppServer({CommandId.SUBMIT_SM: refuse(0x401)}) as server:
        (outcome,) = provider(server.port).send([dispatch("Hi")], transport)
    assert outcome == Retryable("refused: 0x401", blames_account=False)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (0x0E, Misconfigured("ESME_RINVPASWD")),
        (0x0D, Misconfigured("ESME_RBINDFAIL")),
        (0x05, Retryable("ESME_RALYBND")),
        (0x58, Retryable("ESME_RTHROTTLED")),
        (0x45, Retryable("ESME_RSUBMITFAIL")),  # a bind concerns the account, not a message
        (0x401, Misconfigured("the bind was refused: 0x401")),
    ],
)
def test_refused_bind_has_its_outcome(transport: Transport, code: int, expected: Outcome) -> None:
    with SmppServer({CommandId.BIND_TRANSMITTER: refuse(code)}) as server:
        assert provider(server.port).send([dispatch("Hi")], transport) == [expected]


def test_throttling_keeps_accepted_messages(smsc: Smsc, send: Send) -> None:
    """Half of a window is refused for now: each message has its own outcome."""
    smsc.decide = lambda event: 0x58 if event.short_message.endswith(b"odd") else 0
    outcomes = send(*(f"{n} {'odd' if n % 2 else 'even'}" for n in range(20)))
    assert [type(outcome) for outcome in outcomes] == [Accepted, Retryable] * 10


def test_no_answer_is_unknown(smsc: Smsc, send: Send) -> None:
    smsc.decide = lambda event: None if event.short_message == b"silent" else 0
    assert send("silent", "Hi", timeout=TIME_OUT) == [Unknown("time-out"), Accepted("m1")]


def test_session_is_rebound_after_an_unbind(smsc: Smsc, send: Send) -> None:
    assert send("Hi") == [Accepted("m1")]
    smsc.unbind()
    wait_for(lambda: not smsc.sessions)
    assert send("Hi") == [Accepted("m2")]
    assert smsc.binds == 2


def test_message_to_a_stopped_smsc_is_retryable(smsc: Smsc, send: Send) -> None:
    assert send("Hi") == [Accepted("m1")]
    smsc.unbind()
    smsc.stop()
    wait_for(lambda: not smsc.sessions)
    assert send("Hi") == [Retryable("no connection")]


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ((0, 0, 0), Accepted("last")),
        ((0, 0x58, 0), Retryable("ESME_RTHROTTLED")),
        ((0, 0, 0xFF), Unknown("ESME_RUNKNOWNERR")),
        ((0xFF, 0, 0x0B), Rejected("ESME_RINVDSTADR")),
    ],
)
def test_parts_have_one_outcome(
    transport: Transport, statuses: tuple[int, ...], expected: Outcome
) -> None:
    """What is not there as a whole may go again; a part in doubt is a message in doubt."""
    left = list(statuses)

    def answer(connection: socket.socket, request: Pdu) -> None:
        connection.sendall(request.answer(left.pop(0), b"first\0" if left else b"last\0").encode())

    with SmppServer({CommandId.SUBMIT_SM: answer}) as server:
        (outcome,) = provider(server.port).send([dispatch("x" * 400)], transport)
    assert outcome == expected


@pytest.mark.parametrize("sender", ["x" * 21, "a\0b"])
def test_unwritable_message_fails_alone(smsc: Smsc, transport: Transport, sender: str) -> None:
    window = [dispatch("Hi", sender), dispatch("Hi")]
    refused = Rejected("the provider cannot write this message", Fault.CONTENT)
    assert provider(smsc.port).send(window, transport) == [refused, Accepted("m1")]


def test_too_long_text_is_rejected_before_sending(smsc: Smsc, send: Send) -> None:
    outcomes = send("x" * 153 * 256, "x" * 66_000, long_messages="PAYLOAD")
    assert outcomes[0] == Accepted("m1")
    assert outcomes[1] == Rejected("the provider cannot write this message", Fault.CONTENT)
    assert send("x" * (153 * 255 + 1)) == [outcomes[1]]


@pytest.mark.parametrize("password", ["pässword", "x" * 65, "a b"])
def test_error_of_an_invalid_password_does_not_contain_it(password: str) -> None:
    with pytest.raises(ValueError, match="password") as error:
        provider(1, password=password)
    assert password not in str(error.value)
