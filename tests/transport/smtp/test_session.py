"""SMTP sessions without a socket."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rme.transport.messages import Envelope, MailSecurity, Reply, Stage
from rme.transport.smtp.session import InvalidReply, ReplyReader, SmtpReply, mail_transaction

ENVELOPE = Envelope("a@x.test", ("b@y.test",), MailSecurity.NONE)


def replies_of(parts: list[bytes]) -> list[SmtpReply]:
    replies, found = ReplyReader(), []
    for part in parts:
        replies.add(part)
        while reply := replies.take():
            found.append(reply)
    return found


@given(cuts=st.lists(st.integers(0, 60), max_size=6))
def test_replies_split_anywhere_are_read(cuts: list[int]) -> None:
    received = b"250-one\r\n250-two\r\n250 three\r\n354\r\n550 5.1.1 no \xff\n"
    ends = sorted({0, len(received), *(min(cut, len(received)) for cut in cuts)})
    parts = [received[start:end] for start, end in pairwise(ends)]
    assert replies_of(parts) == [
        SmtpReply(250, ("250-one", "250-two", "250 three")),
        SmtpReply(354, ("354",)),
        SmtpReply(550, ("550 5.1.1 no \ufffd",)),
    ]


@pytest.mark.parametrize(
    "received",
    [
        b"hello\r\n",
        b"\r\n",
        b"25 x\r\n",
        b"2500 x\r\n",
        b"099 x\r\n",
        b"699 x\r\n",
        b"250x\r\n",
        b"250 a\0b\r\n",
        b"250 a\rb\r\n",
        b"HTTP/1.1 400 Bad Request\r\n",
        b"250-" + b"x" * 70_000,
        b"250-x\r\n" * 10_000 + b"250 x\r\n",
    ],
)
def test_malformed_reply_is_invalid(received: bytes) -> None:
    with pytest.raises(InvalidReply):
        replies_of([received])


def written(message: bytes) -> bytes:
    """Answer as a server that accepts everything; return what it receives after DATA."""
    talk = mail_transaction(ENVELOPE, message, {"PIPELINING": ""})
    step = next(talk)
    for status in (250, 250, 354):
        step = talk.send(SmtpReply(status, (f"{status} ok",)))
    assert (step.stage, step.ends_message) == (Stage.END, True)
    with pytest.raises(StopIteration) as stop:
        talk.send(SmtpReply(250, ("250 taken",)))
    assert stop.value.value == Reply(250, lines=("250 taken",), stage=Stage.END)
    return step.data


def unstuffed(data: bytes) -> bytes:
    """Read a message as a server does (RFC 5321 §4.5.2)."""
    lines = data.split(b"\r\n")
    assert lines[-2:] == [b".", b""]
    assert b"." not in lines[:-2]
    return b"".join(line.removeprefix(b".") + b"\r\n" for line in lines[:-2])


@given(lines=st.lists(st.text("a.é", max_size=5)))
@example(lines=[".", "..", "", "."])
def test_message_is_read_as_it_was_written(lines: list[str]) -> None:
    message = "".join(f"{line}\r\n" for line in lines).encode()
    assert unstuffed(written(message)) == message


def test_message_without_a_last_line_end_is_given_one() -> None:
    assert written(b"a") == b"a\r\n.\r\n"
