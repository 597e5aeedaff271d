"""Accepting: what is stored and answered, with how many statements."""

import orjson
import pytest
from django.test.utils import CaptureQueriesContext
from django.db import connection

from messaging import accept, claiming, deliver, idempotency, queries, receipts, tasks
from messaging.schemas import MESSAGE, parse
from rme.core.transport import Transport
from tests import factories

pytestmark = pytest.mark.django_db


def message(*people, **fields):
    return {
        "channel": "EMAIL",
        "category": "TRANSACTIONAL",
        "to": [{"contactId": str(person.pk)} for person in people],
        "template": {"name": "welcome", "language": "en_US"},
        "context": {"variables": {"note": "x"}},
        **fields,
    }


def submit(caller, bodies, key=None):
    submissions = [accept.Submission(parse(MESSAGE, body)) for body in bodies]
    return orjson.loads(accept.accept_bulk(caller, submissions, key=key, request_id="r").body)


@pytest.mark.parametrize("count", [1, 50, 500])
def test_statements_do_not_grow_with_the_bulk(count, redis):
    org = factories.organization()
    factories.template(org)
    people = factories.contacts(org, count)
    caller = factories.caller(org)
    submit(caller, [message(people[0])])
    with CaptureQueriesContext(connection, ) as captured:
        answer = submit(caller, [message(person) for person in people])
    for q in captured: print(q["sql"][:200])
    assert answer["accepted"] == count
    assert len(captured) == 4
    print(answer["results"][0])
    window = claiming.claim(org.pk, "EMAIL", 0)
    print(len(window.deliveries))
    with CaptureQueriesContext(connection) as captured:
        rs = deliver.deliver(window, Transport())
    for q in captured: print(q["sql"][:150])
    receipts.apply(rs)
    d = queries.detail(org.pk, str(window.deliveries[0].message_id))
    print(d)
    assert 0
