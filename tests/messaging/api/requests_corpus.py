"""Requests to POST /messages, good, bad and hostile: each has to be answered alike on any way."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
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
    is_cut: bool = False
    """Whether its body ends before its end."""


def samples(person: str, suppressed: str) -> list[Sample]:
    """Return the requests of an organization with these contacts."""
    usual = message(person)
    text = orjson.dumps(usual)
    return [
        *quick_samples(person, suppressed),
        *_types(text),
        *_queries(usual, suppressed),
        *_preferences(usual, suppressed),
        *_sizes(usual),
        *_framings(text),
    ]


def quick_samples(person: str, suppressed: str) -> list[Sample]:
    """Return those of them whose answers depend on no other: they may be sent at once."""
    usual = message(person)
    text = orjson.dumps(usual)
    return [
        *_messages(usual, suppressed),
        *_awry(usual),
        *_bodies(text),
        *_headers(text),
        *_unusual(usual, text),
    ]


def message(person: str) -> dict[str, Any]:
    """Build the request that the others vary."""
    return {
        "channel": "EMAIL",
        "category": "TRANSACTIONAL",
        "to": [{"contactId": person}],
        "template": {"name": "welcome", "language": "en_US"},
        "context": {"variables": {"note": "hello"}},
    }


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


def _unusual(usual: dict[str, Any], text: bytes) -> Iterator[Sample]:
    """Yield requests with other types, queries, hosts, sizes and methods than most have."""
    for kind in (
        *("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"),
        *("application/json; charset=latin-1", "application/json; q=1", "application/jsonx", ""),
    ):
        yield Sample(text, {"Content-Type": kind})
    yield Sample(text, {"Content-Type": None})
    yield Sample(b"")
    for query in ("?dryRun=false", "?dryRun=x", "?x=1", "?dryRun=true&dryRun=true"):
        yield Sample(text, target=f"/rme/v1/messages{query}")
    for preference in ("wait=0", "respond-async", "wait=x"):
        yield Sample(text, {"Prefer": preference})
    for host in ("evil.example", "localhost:x", "localhost, evil.example"):
        yield Sample(text, {"Host": host})
    large = orjson.dumps({**usual, "metadata": {"a": "a" * 64 * 1024}})
    yield Sample(large)
    yield Sample(text, target="/rme/v1/messages/")
    for method in ("PUT", "PATCH", "DELETE", "OPTIONS", "post"):
        yield Sample(text, method=method)
    yield Sample(text, target="/rme/v1/%6dessages")
    yield Sample(text, target="/rme/v1/messages?")


def _types(text: bytes) -> Iterator[Sample]:
    for kind in (
        *("application/json ; charset=UTF-8", "application/json;charset=utf-16", "text/json"),
        *("application/*", "*/*", "application/json;", "application/json, text/plain", "json"),
        *("application/json;charset=none", "application/json; version=2", "/", ";", " "),
        *("multipart/form-data", "application/vnd.api+json", "application/json\t", "APPLICATION/*"),
    ):
        yield Sample(text, {"Content-Type": kind})
        yield Sample(b"{", {"Content-Type": kind, "Authorization": None})
    for kind in (
        None,
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
    ):
        yield Sample(b"", {"Content-Type": kind})
        yield Sample(b"", {"Content-Type": kind, "Content-Length": None})
    yield Sample(
        b"a=1", {"Content-Type": "application/x-www-form-urlencoded"}, "/rme/v1/messages?x=1"
    )


def _queries(usual: dict[str, Any], suppressed: str) -> Iterator[Sample]:
    path, text = "/rme/v1/messages", orjson.dumps(usual)
    person = usual["to"][0]["contactId"]
    for fields in (
        {},
        {"channel": "SMS"},
        {"channel": "PUSH"},
        {"channel": None, "channels": ["PUSH", "SMS", "EMAIL"]},
        {"category": "NONE"},
        {"to": [{"contactId": UNKNOWN}]},
        {"to": [{"contactId": suppressed}]},
        {"to": [{"contactId": person}, {"contactId": suppressed}]},
        {"to": [{"contactId": "003xx000004TmiQ"}]},
        {"template": {"name": "none"}},
        {"context": None},
        {"context": {"recordId": "none"}},
        {"schedule": {"mode": "AT", "at": "2000-01-01T09:00:00Z"}},
        {"schedule": {"mode": "ORG", "time": "09:30", "date": "2000-01-01"}},
        {"schedule": {"mode": "LOCAL", "time": "09:30", "date": "2000-01-01"}},
        {"channel": "AUTO", "from": {"name": "Line\u00e9 of more than eleven"}},
        {"channel": "SMS", "from": {"name": "Line\u00e9 of more than eleven"}},
    ):
        body = orjson.dumps({name: part for name, part in {**usual, **fields}.items() if part})
        yield Sample(body, target=f"{path}?dryRun=true")
        yield Sample(body, {"Prefer": "wait=0"})
    for query in (
        *("?dryRun=TRUE", "?dryRun=1", "?dryRun=", "?dryRun", "?dryrun=true", "?DRYRUN=true"),
        *("?dryRun=true&x=1", "?y=1&x=1", "?x=%00", "?dryRun=%00", "?dryRun=true%00", "?%00=1"),
        *("?&", "?=", "?;", "?%", "?%ff=1", "?dryRun=false&dryRun=true", "?limit=1", "?x=1&x=2"),
    ):
        yield Sample(text, target=path + query)
        yield Sample(b"{", target=path + query)
    yield Sample(text, {"Authorization": None}, f"{path}?x=1")
    yield Sample(text, {"Content-Type": "text/plain"}, f"{path}?x=1")
    yield Sample(text, {"Content-Type": "text/plain"}, f"{path}?dryRun=x")
    yield Sample(b"", target=f"{path}?dryRun=true")
    yield Sample(text, {"Idempotency-Key": "k"}, f"{path}?dryRun=true")
    yield Sample(text, {"Idempotency-Key": ""}, f"{path}?dryRun=true")
    yield Sample(text, {"Prefer": "wait=1"}, f"{path}?dryRun=true")
    yield Sample(text[:-1] + b',"metadata":{"a":"\\u0000"}}', target=f"{path}?dryRun=true")


def _preferences(usual: dict[str, Any], suppressed: str) -> Iterator[Sample]:
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    scheduled = {**usual, "schedule": {"mode": "AT", "at": f"{tomorrow[:19]}Z"}}
    refused = {**usual, "to": [{"contactId": suppressed}]}
    yield Sample(orjson.dumps(usual), {"Prefer": "wait=1"})
    for wait in ("wait=1", "respond-async, wait=1", "wait=x", "WAIT=2", "wait=-1", ""):
        for body in (scheduled, refused):
            yield Sample(orjson.dumps(body), {"Prefer": wait})
    for _ in range(2):
        yield Sample(orjson.dumps(scheduled), {"Prefer": "wait=1", "Idempotency-Key": "waits"})
    yield Sample(orjson.dumps(refused), {"Prefer": "wait=1", "Idempotency-Key": "waits"})
    yield Sample(b"{", {"Prefer": "wait=1"})
    yield Sample(b"{", {"Prefer": "wait=1", "Authorization": "Bearer nobody"})


def _sizes(usual: dict[str, Any]) -> Iterator[Sample]:
    limit = 5 * 1024 * 1024
    text = orjson.dumps(usual)
    large = orjson.dumps({**usual, "metadata": {"a": "a" * 100_000}})
    yield Sample(large, {"Authorization": None})
    yield Sample(large, {"Idempotency-Key": "large"})
    yield Sample(large[:-1])
    yield Sample(large, target="/rme/v1/messages?dryRun=true")
    yield Sample(text[:-1] + b" " * 100_000 + b"}")
    yield Sample(text[:-1] + b" " * 100_000 + b"}", {"Idempotency-Key": "large too"})
    for size in (limit, limit + 1, limit + 2 * 1024 * 1024):
        body = text[:-1] + b" " * (size - len(text)) + b"}"
        yield Sample(body)
        yield Sample(body, {"Content-Length": None, "Transfer-Encoding": "chunked"})
        yield Sample(body, {"Authorization": None})
        yield Sample(body, {"Host": "evil.example"})
        yield Sample(body, target="/rme/v1/messages?x=1")
        yield Sample(body, {"Content-Type": "text/plain"})


def _framings(text: bytes) -> Iterator[Sample]:
    chunked: dict[str, str | None] = {"Content-Length": None, "Transfer-Encoding": "chunked"}
    yield Sample(text, chunked)
    yield Sample(b"", chunked)
    yield Sample(text, {**chunked, "Prefer": "wait=0"})
    yield Sample(text, chunked, is_cut=True)
    yield Sample(text, {**chunked, "Host": "evil.example"}, is_cut=True)
    yield Sample(text, {**chunked, "Authorization": None}, is_cut=True)
    yield Sample(text, is_cut=True)
    for coding in ("gzip", "gzip, chunked", "CHUNKED", " chunked "):
        yield Sample(text, {"Content-Length": None, "Transfer-Encoding": coding})
        yield Sample(text, {"Transfer-Encoding": coding})
    for host in (None, "", "localhost:80", "127.0.0.1", "localhost:99999", "LOCALHOST", "[::1]"):
        yield Sample(text, {"Host": host})
        yield Sample(b"{", {"Host": host, "Authorization": None, "X-Request-Id": REQUEST_ID})
    yield Sample(text, {"Host": "evil.example", "Prefer": "wait=1"}, "/rme/v1/messages?x=1")
    for method in ("GET", "HEAD"):
        yield Sample(b"", target="/rme/v1/messages?limit=0", method=method)
        yield Sample(text, {"Authorization": None}, method=method)
    yield Sample(text, {"Origin": "https://evil.example"}, method="OPTIONS")
    yield Sample(text, {"Access-Control-Request-Method": "POST"}, method="OPTIONS")
    yield Sample(text, {"X-Http-Method-Override": "POST"}, method="PUT")
    yield Sample(text, method="TRACE")
    yield Sample(text, target="/rme/v1//messages")
    yield Sample(text, target="/rme/v1/messages;x")
    yield Sample(text, target="/rme/v1/MESSAGES")
