"""POST /messages answers requests of every shape as `send_answers.jsonl` has it, line by line.

A line has a request, its answer, its log line and its record in the request log. To record the
answers anew, after a change that is meant to change them, run this test with RECORD_ANSWERS=1.
"""

import json
import logging
import os
import re
from pathlib import Path

import pytest

from messaging.api.messages import SINGLE_SENDS
from rme.core.http import edge, request_records
from rme.tenants.models import Organization
from tests.messaging.api.requests_corpus import Sample
from tests.messaging.api.test_single_sends import UUID, Caller, usual

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("redis", "redis_clock"),
]
ANSWERS = Path(__file__).with_name("send_answers.jsonl")
CHANGING = re.compile(r"\bt=\d+|(?<=application_id\": )\d+|2[01](?!99)\d\d-\d\d-\d\dT[\d:.]+Z")
"""Seconds until a limit is whole again, ids of applications, and times of today."""

WHOLE_SECOND = re.compile(r'\\*"at\\*":\\*"[^"]{17}\d\dZ\\*",\\*"step')
LENGTH = re.compile(r"('content-length', ')(\d+)")


class Lines(logging.Handler):
    """Keeps the log lines of requests."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        lines = record.msg if isinstance(record.msg, list) else [record.msg]
        self.lines += [
            {name: text for name, text in line.items() if name not in ("ms", "timestamp")}
            for line in lines
            if line["event"] == "request"
        ]


@pytest.fixture
def log_lines():
    handler, logger = Lines(), logging.getLogger("rme.core.http.api")
    logger.addHandler(handler)
    yield handler.lines
    logger.removeHandler(handler)


@pytest.fixture(params=["gateway", "wsgi"])
def caller(request, org):
    Organization.objects.update(calls_per_second=1000)
    handler = SINGLE_SENDS if request.param == "gateway" else None
    caller = Caller(org, handler)
    yield caller
    caller.close()


def described(sample, caller):
    """Return a request as a line shows it."""
    body = UUID.sub("ID", sample.body.decode("latin-1"))
    return {
        "request": f"{sample.method} {sample.target}",
        "headers": {**sample.headers, **({"client": caller.peer} if sample.is_cut else {})},
        "body": body if len(body) < 250 else f"{body[:150]} ... {len(body)} bytes",
    }


def answered(caller, sample, log_lines):
    """Send a request; return the lines of a file that show it and its answer."""
    log_lines.clear()
    (answer,) = caller.answers([sample])
    records = [
        [each.method, each.route, each.status, each.details.code, bool(each.details.message_id)]
        for each in request_records.buffer.take(10)
    ]
    text = json.dumps(
        {**described(sample, caller), "answer": answer, "log": log_lines, "record": records},
        sort_keys=True,
    )
    return CHANGING.sub("CHANGING", UUID.sub("ID", _with_milliseconds(text)))


def _with_milliseconds(text):
    """Return an answer with the length that it has if no step of a trace is at a whole second."""
    shorter = 4 * len(WHOLE_SECOND.findall(text))
    return LENGTH.sub(lambda length: f"{length[1]}{int(length[2]) + shorter}", text, count=1)


def tls_samples(caller):
    """Return requests that reach a deployment at an https address in clear, or by a proxy."""
    text = usual(caller)
    for headers in (
        {},
        {"X-Forwarded-Proto": "https"},
        {"X-Forwarded-Proto": "http"},
        {"X-Forwarded-Proto": "https, http"},
        {"Forwarded": "for=192.0.2.9;proto=https"},
        {"Authorization": None},
        {"Prefer": "wait=0"},
        {"Host": "evil.example"},
    ):
        yield Sample(text, headers)
    yield Sample(text, {"X-Forwarded-Proto": "http"}, "/rme/v1/messages?x=1")


def test_requests_of_every_shape_are_answered_as_recorded(caller, log_lines, settings, monkeypatch):
    monkeypatch.setattr(request_records.buffer, "is_on", True)
    lines = [answered(caller, sample, log_lines) for sample in caller.samples]
    for base, proxy, peer in (
        ("https://rme.example", False, "192.0.2.1"),
        ("https://rme.example", False, "127.0.0.1"),
        ("https://rme.example", True, "192.0.2.1"),
    ):
        settings.BASE_URL, settings.TLS_PROXY, caller.peer = base, proxy, peer
        edge._passes.cache_clear()
        lines += [answered(caller, sample, log_lines) for sample in tls_samples(caller)]
    edge._passes.cache_clear()
    if os.environ.get("RECORD_ANSWERS"):
        ANSWERS.write_text("\n".join(lines) + "\n")
        pytest.fail("recorded: run it again without RECORD_ANSWERS")
    recorded = ANSWERS.read_text().splitlines()
    assert len(recorded) > 300
    assert [line for line in lines if line not in recorded] == []
    assert lines == recorded
