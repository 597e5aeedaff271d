import email
import re
import time
from email import policy
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.utils import parseaddr

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from messaging.providers import mime
from rme.core.provider import Email

TEXT = st.text(max_size=400)
ANY_TEXT = st.one_of(
    TEXT,
    st.text(alphabet=st.characters(max_codepoint=0x7F), max_size=400),
    st.text(alphabet='a =?_.\r\n\0"\\,<>@:;()é€😀\u2028\ud800', max_size=200),
    st.builds(lambda part, times: part * times, st.text(min_size=1, max_size=30), st.just(60)),
)
WRITTEN = {"from", "to", "subject", "date", "message-id", "mime-version"}


def sample_email(**given: str) -> Email:
    defaults = {
        "to": "to@x.test",
        "from_address": "from@y.test",
        "from_name": "",
        "subject": "Hello",
        "text": "Hi",
        "message_id": "1@y.test",
    }
    return Email(**{**defaults, **given})  # type: ignore[arg-type]


def parse(data: bytes) -> EmailMessage:
    message = email.message_from_bytes(data, policy=policy.default)
    assert isinstance(message, EmailMessage)
    return message


def one_line(text: str) -> str:
    """What of a text can be in a header: line ends and other controls have become spaces."""
    text = re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", " ", text)
    return re.sub(r"[\ud800-\udfff]", "\ufffd", text)


def lines(text: str) -> str:
    """What of a text a body holds: one kind of line end, and one at the end."""
    text = re.sub(r"\r\n|\r", "\n", re.sub(r"[\ud800-\udfff]", "\ufffd", text))
    return text if text.endswith("\n") else text + "\n"


def body_of(part: EmailMessage) -> str:
    payload = part.get_payload(decode=True)
    assert isinstance(payload, bytes)
    return payload.decode(part.get_content_charset() or "").replace("\r\n", "\n")


def mailbox_of(data: bytes, name: str) -> tuple[str, str]:
    """Read a mailbox. The policy's own reader leaves spaces between encoded words (RFC 2047 §6.2
    has them dropped) until Python 3.12 or so, so the older one does it."""
    raw = email.message_from_bytes(data)[name].replace("\r\n", "").replace("\n", "")
    label, address = parseaddr(raw)
    return str(make_header(decode_header(label))), address


@settings(max_examples=300, deadline=None)
@given(subject=ANY_TEXT, from_name=ANY_TEXT, to_name=ANY_TEXT, text=ANY_TEXT, html=ANY_TEXT)
@example(subject="a\r\nBcc: x@y", from_name='x" <a@b>, "y', to_name="\\", text=".\r\n.", html="")
@example(subject=" a  b ", from_name="=?utf-8?q?a?=", to_name=" ", text="", html="<p>\r</p>")
@example(
    subject="x" * 400, from_name="x" * 99, to_name="x, " * 40, text="é" * 2000, html="x" * 3000
)
def test_written_message_has_the_given_content(
    subject: str, from_name: str, to_name: str, text: str, html: str
) -> None:
    given_email = sample_email(
        subject=subject, from_name=from_name, to_name=to_name, text=text, html=html
    )
    data = mime.write(given_email)
    head, _, _ = data.partition(b"\r\n\r\n")
    message = parse(data)
    body = (
        {"content-type", "content-transfer-encoding"} if not (text and html) else {"content-type"}
    )
    assert {name.lower() for name in message} == WRITTEN | body
    assert len(message.keys()) == len(WRITTEN | body)
    assert message["subject"] == one_line(subject)
    assert [address.addr_spec for address in message["from"].addresses] == ["from@y.test"]
    assert [address.addr_spec for address in message["to"].addresses] == ["to@x.test"]
    assert mailbox_of(data, "From") == (one_line(from_name).strip(" "), "from@y.test")
    assert mailbox_of(data, "To") == (one_line(to_name).strip(" "), "to@x.test")
    parts = list(message.iter_parts()) if message.is_multipart() else [message]
    wanted = [("text/plain", text)] * bool(text or not html) + [("text/html", html)] * bool(html)
    assert [(part.get_content_type(), body_of(part)) for part in parts] == [
        (kind, lines(content)) for kind, content in wanted
    ]
    assert all(len(line) <= 78 for line in head.split(b"\r\n"))
    assert all(len(line) <= 998 for line in data.split(b"\r\n"))
    assert not re.search(rb"\r(?!\n)|(?<!\r)\n|\0|[^\x00-\x7f]", data)
    assert data.endswith(b"\r\n")


def test_write_keeps_a_plain_text_readable() -> None:
    data = mime.write(sample_email(subject="Your code", from_name="Ann B", text="Code: 1\n.\nBye"))
    head, _, body = data.partition(b"\r\n\r\n")
    found = head.decode().split("\r\n")
    assert found[:3] == ["From: Ann B <from@y.test>", "To: to@x.test", "Subject: Your code"]
    assert found[4:] == [
        "Message-ID: <1@y.test>",
        "MIME-Version: 1.0",
        'Content-Type: text/plain; charset="us-ascii"',
        "Content-Transfer-Encoding: 7bit",
    ]
    assert body == b"Code: 1\r\n.\r\nBye\r\n"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("plain", "7bit"),
        ("a few é among many plain letters", "quoted-printable"),
        ("ends in a space \nnext", "quoted-printable"),
        ("x" * 2000, "quoted-printable"),
        ("Привет, мир", "base64"),
    ],
)
def test_write_chooses_the_encoding_by_content(text: str, encoding: str) -> None:
    message = parse(mime.write(sample_email(text=text)))
    assert message["content-transfer-encoding"] == encoding
    assert body_of(message) == text + "\n"


def test_write_dates_with_the_time() -> None:
    before = int(time.time())
    date = parse(mime.write(sample_email()))["date"].datetime
    assert before <= date.timestamp() <= time.time() + 1


@settings(max_examples=200, deadline=None)
@given(value=ANY_TEXT)
def test_write_cannot_be_made_to_add_a_header(value: str) -> None:
    given_email = Email(
        to="to@x.test",
        from_address="from@y.test",
        from_name="",
        subject="",
        text="Hi",
        message_id="1@y.test",
        headers={"List-Unsubscribe": value},
    )
    message = parse(mime.write(given_email))
    assert len(message.keys()) == len(WRITTEN) + 3
    assert message.get_payload() == "Hi\n" or message.get_payload() == "Hi\r\n"


def test_write_folds_a_list_unsubscribe_at_its_space_only() -> None:
    value = f"<https://x.test/u/{'a' * 120}>, <mailto:u@x.test?subject={'b' * 60}>"
    given_email = Email(
        "to@x.test",
        "from@y.test",
        "",
        "S",
        "T",
        message_id="1@y",
        headers={"List-Unsubscribe": value},
    )
    data = mime.write(given_email)
    assert value.replace(", ", ",\r\n ").encode() in data
    assert parse(data)["list-unsubscribe"] == value


@pytest.mark.parametrize("name", ["Subject", "content-type", "X Y", "X:Y", "X\r\nY", ""])
def test_write_rejects_reserved_or_malformed_header_names(name: str) -> None:
    with pytest.raises(ValueError, match="not a header"):
        mime.write(Email("to@x.test", "from@y.test", "", "S", "T", headers={name: "v"}))
