"""Requests to POST /messages, good, bad and hostile: each has to be answered alike on any way."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

UNKNOWN = "01a1fb37-a4a4-7470-9fc2-6927566e64b5"
REQUEST_ID = "7b0f9f0e-6a53-4a0b-9a53-0d6d8f3c2a11"
JSON = {"Content-Type": "application/json"}
AWRY: list[Any] = [None, 5, 1e400, True, "x", "", [], {}, ["x"], {"x": {}}]


class Sample(NamedTuple):
    """A request: its body, and what differs from the usual one."""

    body: bytes
    headers: dict[str, str | None] = {}
    """None: the usual header is left out."""
    target: str = "/rme/v1/messages"
    method: str = "POST"
    together: bool = True
    """Whether it is answered by a set."""


def samples(person: str, suppressed: str) -> list[Sample]:
    """Return the requests of an organization with these contacts."""
    usual = {
        "channel": "EMAIL",
        "category": "TRANSACTIONAL",
        "to": [{"contactId": person}],
        "template": {"name": "welcome", "language": "en_US"},
        "context": {"variables": {"note": "hello"}},
    }
    return [
        *_messages(usual, suppressed),
        *_awry(usual),
        *_bodies(orjson.dumps(usual)),
        *_headers(orjson.dumps(usual)),
        *_other_ways(usual, orjson.dumps(usual)),
    ]


def _messages(usual: dict[str, Any], suppressed: str) -> Iterator[Sample]:
    literal = {name: value for name, value in usual.items() if name not in ("template", "context")}
    email = {"subject": "s", "text": "Grüezi \N{GRINNING FACE}"}
    person = usual["to"][0]["contactId"]
    for fields in (
        {},
        {"channel": "sms"},
        {"channel": "PUSH"},
        {"channel": "AUTO"},
        {"category": "transactional"},
        {"category": "MARKETING"},
        {"category": "NONE"},
        {"to": [{"contactId": UNKNOWN}]},
        {"to": [{"contactId": UNKNOWN.upper()}]},
        {"to": [{"contactId": suppressed}]},
        {"to": [{"contactId": person, "variables": {"note": "own"}}]},
        {"to": [{"contactId": person}, {"contactId": suppressed}]},
        {"to": [{"contactId": person}, {"contactId": person}]},
        {"to": [{"contactId": "003xx000004TmiQ"}]},
        {"template": {"name": "none"}},
        {"template": {"name": "welcome", "language": "fr_FR"}},
        {"context": None},
        {"context": {"recordId": "none", "variables": {"note": "hello"}}},
        {"from": {"domain": "none.example"}},
        {"schedule": {"mode": "AT", "at": "2099-01-01T09:00:00Z"}},
        {"schedule": {"mode": "LOCAL", "time": "09:30", "date": "2099-01-01"}},
        {"schedule": {"mode": "AT", "at": "2099-01-01T09:00:00"}},
        {"metadata": {"order": "1"}},
        {"content": email},
        {"nothing": 1},
        {f"x{number}": 1 for number in range(120)},
    ):
        yield Sample(orjson.dumps({**usual, **fields}))
    for fields in (
        {"content": email},
        {"content": {"text": "t"}},
        {"channel": "SMS", "content": {"text": "t"}},
        {"channel": None, "channels": ["PUSH", "EMAIL"], "content": {**email, "title": "t"}},
        {"channel": None, "channels": ["SMS", "SMS"], "content": email},
        {"content": {"subject": "a\r\nBcc: b", "text": "t"}},
    ):
        yield Sample(orjson.dumps({**literal, **fields}))


def _awry(usual: dict[str, Any]) -> Iterator[Sample]:
    for name in (*usual, "strategy", "schedule", "metadata", "from"):
        for place, value in enumerate(AWRY):
            if (place + len(name)) % 2:  # half of them: each kind of value, and each field
                yield Sample(orjson.dumps({**usual, name: value}))


def _bodies(usual: bytes) -> Iterator[Sample]:
    filled = usual[:-1] + b',"metadata":{"a":"'
    for body in (
        *(
            b"{",
            b"[]",
            b"null",
            b"1",
            b'"x"',
            b"tru",
            b"\xef\xbb\xbf{}",
            b"\xff\xfe",
            b" ",
            b"\x00",
        ),
        *(usual[:-1], usual + b"}", usual + b" \n", b"[" + usual + b"]"),
        *(b"[" * 60 + b"]" * 60, b"[" * 70 + b"]" * 70, b"[" * 30_000, b'{"a":' * 2000),
        *(
            b"[" + b"0," * 30_000 + b"0]",
            b'{"a":NaN}',
            b'{"a":1e999}',
            b'{"a":' + b"9" * 400 + b"}",
        ),
        *(filled + b'\\u0000"}}', filled + b'\\ud800"}}', filled + b'\x01"}}', filled + b'\\x"}}'),
        *(filled + b'\xed\xa0\x80"}}', filled + b'\\\\u0000"}}'),
        usual[:-1] + b',"channel":"SMS"}',
        usual[:-1] + b" " * (64 * 1024 - len(usual)) + b"}",
    ):
        yield Sample(body)


def _headers(usual: bytes) -> Iterator[Sample]:
    keys = (
        "k",
        "k",
        '"k"',
        " k ",
        '"new"',
        "",
        " ",
        '""',
        "k" * 255,
        "k" * 256,
        "ü",
        "a\tb",
        "k, k",
    )
    for key in keys:
        yield Sample(usual, {"Idempotency-Key": key})
    yield Sample(usual.replace(b"hello", b"other"), {"Idempotency-Key": "k"})
    yield Sample(usual.replace(b'":"', b'" : "'), {"Idempotency-Key": "k"})
    yield Sample(b"{", {"Idempotency-Key": "k" * 256})
    yield Sample(usual.replace(b"TRANSACTIONAL", b"NONE"), {"Idempotency-Key": "refused"})
    yield Sample(usual.replace(b"TRANSACTIONAL", b"NONE"), {"Idempotency-Key": "refused"})
    tokens = (
        "",
        "Bearer",
        "Bearer ",
        "Basic eDp5",
        "Bearer nobody",
        "Bearer a b",
        "Bearer \u00fc",
        "x",
    )
    for token in tokens:
        yield Sample(usual, {"Authorization": token})
    yield Sample(usual, {"Authorization": None})
    yield Sample(b"{", {"Authorization": None})
    for identifier in (REQUEST_ID, REQUEST_ID.upper(), f"urn:uuid:{REQUEST_ID}"):
        yield Sample(usual, {"X-Request-Id": identifier})
    for kind in (
        "APPLICATION/JSON",
        "application/json;charset=UTF-8",
        "application/json; charset=utf-8",
    ):
        yield Sample(usual, {"Content-Type": kind})
    for name, text in (
        ("Accept", "text/html"),
        ("Accept-Encoding", "gzip"),
        ("Content-Encoding", "gzip"),
        ("X-Http-Method-Override", "DELETE"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Host", "evil.example"),
        ("Cookie", "sessionid=x"),
        ("Origin", "https://evil.example"),
    ):
        yield Sample(usual, {name: text})


def _other_ways(usual: dict[str, Any], text: bytes) -> Iterator[Sample]:
    """Yield what the ordinary way answers alone."""
    for kind in (
        *("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"),
        *("application/json; charset=latin-1", "application/json; q=1", "application/jsonx", ""),
    ):
        yield Sample(text, {"Content-Type": kind}, together=False)
    yield Sample(text, {"Content-Type": None}, together=False)
    yield Sample(b"", together=False)
    for query in ("?dryRun=false", "?dryRun=x", "?x=1", "?dryRun=true&dryRun=true"):
        yield Sample(text, target=f"/rme/v1/messages{query}", together=False)
    for preference in ("wait=0", "respond-async", "wait=x"):
        yield Sample(text, {"Prefer": preference}, together=False)
    for host in ("evil.example", "localhost:x", "localhost, evil.example"):
        yield Sample(text, {"Host": host}, together=False)
    large = orjson.dumps({**usual, "metadata": {"a": "a" * 64 * 1024}})
    yield Sample(large, together=False)
    yield Sample(text, target="/rme/v1/messages/", together=False)
    for method in ("PUT", "PATCH", "DELETE", "OPTIONS", "post"):
        yield Sample(text, method=method, together=False)
    yield Sample(text, target="/rme/v1/%6dessages")
    yield Sample(text, target="/rme/v1/messages?")
