"""Twilio as it is asked: the question, and what its answers mean."""

from functools import partial

import pytest

from messaging.providers import REGISTRY
from rme.core import ids
from rme.core.provider import DeliveryReceipt, SentMessage, UnknownCode
from rme.transport import Failure, FailureKind, Reply
from tests.fakes.providers import SETTINGS

ATTEMPT = ids.new_id()
answer = partial(Reply, 200)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (answer(body=b'{"status": "delivered", "error_code": null}'),
         [DeliveryReceipt(ATTEMPT, "delivered")]),
        (answer(body=b'{"status": "read"}'), [DeliveryReceipt(ATTEMPT, "open")]),
        (answer(body=b'{"status": "undelivered", "error_code": 30003}'),
         [DeliveryReceipt(ATTEMPT, "failed", "Twilio 30003", soft=True)]),
        (answer(body=b'{"status": "failed", "error_code": 21211}'),
         [DeliveryReceipt(ATTEMPT, "bounced", "Twilio 21211")]),
        (answer(body=b'{"status": "undelivered", "error_code": 30999}'),
         [DeliveryReceipt(ATTEMPT, "failed", "Twilio 30999"), UnknownCode("30999")]),
        (answer(body=b'{"status": "lost"}'), [UnknownCode("lost")]),
        (answer(body=b'{"status": "queued"}'), []),
        (Reply(404, body=b'{"status": 404, "code": 20404}'), []),
        (answer(body=b"{}"), None),
        (answer(body=b"no JSON"), None),
        (answer(body=b'{"status": [1]}'), None),
        (Reply(401, body=b'{"status": 401, "code": 20003}'), None),
        (Reply(429, body=b'{"status": "delivered"}'), None),
        (Reply(500), None),
        (Failure(FailureKind.UNKNOWN, "time-out"), None),
        (Failure(FailureKind.NOT_SENT, "no connection"), None),
    ],
)  # fmt: skip
def test_twilio_reads_the_reply_of_a_poll(reply, expected):
    own = REGISTRY["twilio"].Settings.model_validate({**SETTINGS["twilio"], "status_by": "POLL"})
    assert REGISTRY["twilio"](own).read_poll_reply(SentMessage(ATTEMPT, "SM1"), reply) == expected


def test_id_is_escaped_in_the_url():
    own = REGISTRY["twilio"].Settings.model_validate({**SETTINGS["twilio"], "status_by": "POLL"})
    asked = REGISTRY["twilio"](own).poll_request(SentMessage(ATTEMPT, "../Calls?x=ü"))
    assert asked.url.endswith("/Messages/..%2FCalls%3Fx%3D%C3%BC.json")
