"""POST /messages by the web server's sets and by WSGI: both store and answer the same."""

import asyncio
import re

import orjson
import pytest
from django.core.wsgi import get_wsgi_application
from django.db import connections

from messaging.api.messages import SINGLE_SENDS
from messaging.models import IdempotencyKey, Message, Suppression
from rme.core.http import request_records
from rme.core.http.chunked import ChunkedBodies
from rme.core.http.serving.gateway import Gateway
from rme.core.http.set_frame import FramedSets
from rme.core.process.admission import NOBODY
from rme.core.telemetry import meters
from rme.tenants.models import Application, Organization
from rme.tenants.oauth import authentication
from tests import factories
from tests.messaging.api.requests_corpus import Sample, quick_samples, samples
from tests.messaging.delivery.slow_scene import database_away, wait_for
from tests.rest import Api, message
from tests.scrape import counted, labels

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("redis", "redis_clock"),
]

UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Counted(FramedSets):
    """The handler of production, which notes the sizes of its sets."""

    def __init__(self):
        super().__init__(**vars(SINGLE_SENDS))
        self.sizes = []

    def answer(self, requests):
        self.sizes.append(len(requests))
        return super().answer(requests)


class Caller:
    """Sends requests of an organization through a gateway, without a network."""

    def __init__(self, row, handler=None):
        people = factories.contacts(row, 2)
        factories.device(row, people[0])
        Suppression.objects.create(
            organization=row, channel="EMAIL", address=people[1].email, reason="COMPLAINT"
        )
        ids = [str(person.pk) for person in people]
        self.samples, self.quick_samples = samples(*ids), quick_samples(*ids)
        self.person = people[0]
        self.peer = "127.0.0.1"
        self.token = Api(row).token
        sets = {SINGLE_SENDS.route: handler} if handler else {}
        app = ChunkedBodies(get_wsgi_application())
        self.gateway = Gateway(app, 1, apart={SINGLE_SENDS.route: 1}, sets=sets)

    async def send(self, sample):
        usual = {
            "Host": "localhost",
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Content-Length": str(len(sample.body)),
        }
        headers = {**usual, **sample.headers}
        path, _, query = sample.target.partition("?")
        scope = {
            "method": sample.method,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "http_version": "1.1",
            "scheme": "http",
            "headers": [
                (name.lower().encode(), text.encode("latin-1"))
                for name, text in headers.items()
                if text is not None
            ],
            "client": (self.peer, 50000),
            "server": ("127.0.0.1", 8000),
        }
        sent = []

        async def receive():
            if sample.is_cut:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": sample.body, "more_body": False}

        async def send(part):
            sent.append(part)

        await self.gateway(scope, receive, send)
        return sent

    def answers(self, some):
        """Send requests at once; return what each got, without ids."""

        async def run():
            return await asyncio.gather(*(self.send(sample) for sample in some))

        return [shown(sent) for sent in asyncio.run(run())]

    def close(self):
        pools = [self.gateway.pool, *self.gateway.pools.values()]
        threads = [self.gateway.refusing, *(q.thread for q in self.gateway.sets.values())]
        closed = [pool.submit(NOBODY, connections.close_all) for pool in pools]
        closed += [each.submit(connections.close_all) for each in threads]
        for each in closed:
            each.result()
        for each in [*pools, *threads]:
            each.shutdown()


def shown(sent):
    if not sent:
        return None  # its client left
    start, *rest = sent
    headers = sorted(
        (name.decode().lower(), value.decode("latin-1")) for name, value in start["headers"]
    )
    body = b"".join(part["body"] for part in rest)
    return start["status"], UUID.sub("ID", str(headers)), UUID.sub("ID", body.decode())


@pytest.fixture
def callers(org):
    """Return a caller by sets and one by WSGI, of organizations that are alike."""
    other = factories.organization("other")
    factories.welcome(other)
    Organization.objects.update(calls_per_second=1000)
    made = [Caller(org, Counted()), Caller(other)]
    yield made
    for each in made:
        each.close()


def handler_of(caller):
    return caller.gateway.sets[SINGLE_SENDS.route].handler


def test_sets_store_and_answer_the_same_as_wsgi(callers, monkeypatch):
    by_set, by_wsgi = callers
    monkeypatch.setattr(request_records.buffer, "is_on", True)
    answers = [by_set.answers([sample]) for sample in by_set.quick_samples]
    assert answers == [by_wsgi.answers([sample]) for sample in by_wsgi.quick_samples]
    assert len(answers) > 150
    is_send = [each.method == "POST" for each in by_set.quick_samples]
    assert len(handler_of(by_set).sizes) == sum(is_send) - 1  # one has another path
    counts = [Message.objects.filter(organization_id=name).count() for name in ("acme", "other")]
    assert counts[0] == counts[1] > 30
    keys = IdempotencyKey.objects.order_by("key")
    stored = [
        [
            (row.key, row.status, UUID.sub("ID", row.body))
            for row in keys.filter(organization_id=name)
        ]
        for name in ("acme", "other")
    ]
    assert stored[0] == stored[1]
    recorded = {"acme": [], "other": []}
    for each in request_records.buffer.take(1000):
        details = (each.details.code, each.details.message_id is not None)
        recorded[each.organization_id].append((each.method, each.route, each.status, details))
    assert recorded["acme"] == recorded["other"]
    assert len(recorded["acme"]) > 130


@pytest.mark.parametrize("categories", [[], ["MARKETING"]])
def test_set_rejects_messages_not_granted_to_the_application(callers, categories):
    by_set, by_wsgi = callers
    Application.objects.update(send_categories=categories)
    for each in callers:
        authentication.forget(each.token)
    found = by_set.answers(by_set.quick_samples[:1])
    assert found == by_wsgi.answers(by_wsgi.quick_samples[:1])
    status, _, body = found[0]
    name = "SEND:TRANSACTIONAL" if categories else "SEND"
    assert (status, f"lacks the permission {name}." in body) == (403, True)


def test_simultaneous_requests_get_the_same_answers_as_single_ones(callers):
    """The state of the limit differs: calls that go by themselves are counted in another order."""
    by_set, by_wsgi = callers
    found = by_set.answers(by_set.quick_samples)
    expected = [by_wsgi.answers([sample])[0] for sample in by_wsgi.quick_samples]
    assert max(handler_of(by_set).sizes) == 64

    def without_limits(answers):
        return [(each[0], re.sub(r"r=\d+;t=\d+", "", each[1]), each[2]) for each in answers]

    assert without_limits(found) == without_limits(expected)


def test_a_limit_of_calls_stops_the_last_of_a_set(callers):
    by_set = callers[0]
    Organization.objects.update(calls_per_second=3)
    results = []
    for caller in callers:
        good = Sample(usual(caller))
        some = [good, Sample(b"{"), good, good, Sample(b"{")]
        if caller is by_set:
            results.append(caller.answers(some))
        else:
            results.append([caller.answers([sample])[0] for sample in some])
    assert results[0] == results[1]
    assert [status for status, *_ in results[0]] == [202, 400, 202, 429, 429]
    assert handler_of(by_set).sizes == [5]


def usual(caller):
    return orjson.dumps(message(caller.person))


def test_requests_get_503_while_the_database_is_down(callers):
    by_set, _ = callers
    good = Sample(usual(by_set))
    by_set.answers([good])
    with database_away():
        answers = by_set.answers([good, good])
    assert [status for status, *_ in answers] == [503, 503]
    assert all("('retry-after', '5')" in headers for _, headers, _ in answers)
    wait_for(lambda: [status for status, *_ in by_set.answers([good])] == [202])


def test_each_request_is_counted_for_metrics(callers, counting):
    assert callers
    for caller in callers:
        meters.share(counting)
        caller.answers([Sample(usual(caller)), Sample(b"{"), Sample(b"[")])
        route = labels(method="POST", path="/rme/v1/messages")
        assert counted("rme_requests_total") == {
            route | labels(status="202"): 1.0,
            route | labels(status="400"): 2.0,
        }
        assert counted("rme_accept_seconds_count") == {labels(path="/rme/v1/messages"): 1}


def test_call_outside_of_a_set_waits_for_a_thread_in_bounded_time(callers, settings):
    by_set = callers[0]
    people = factories.contacts(by_set.person.organization, 2)
    several = Sample(orjson.dumps(message(*people)))
    assert [status for status, *_ in by_set.answers([several])] == [202]
    settings.DATABASE_SECONDS = 0
    ((status, headers, _),) = by_set.answers([several])
    assert (status, "('retry-after', '1')" in headers) == (503, True)
    assert handler_of(by_set).sizes == [1, 1]
