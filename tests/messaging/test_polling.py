"""Asking a provider that cannot call us what became of messages."""

import time
from collections import Counter
from datetime import timedelta
from functools import partial
from itertools import count
from urllib.parse import parse_qs

import orjson
import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from messaging import circuits, polling, references, tasks
from messaging.models import Attempt, Delivery, ProviderAccount, ProviderReference, Suppression
from messaging.providers import REGISTRY
from messaging.providers.base import Report, Taken, UnknownCode
from rme.core import clock, ids
from rme.core.cache import TtlCache
from rme.core.transport import Failure, FailureKind, Reply
from tests import factories
from tests.fakes import http1, tcp
from tests.fakes.http1 import Http1Server
from tests.fakes.providers import SETTINGS
from tests.fakes.tcp import free_port
from tests.messaging.sms_scene import Scene, state
from tests.rest import events, message, work

pytestmark = pytest.mark.django_db


class Twilio(Scene):
    """Twilio as it is asked: what it says of each message, by the number it went to."""

    def __init__(self, org, **fields):
        super().__init__(org, "twilio", **{"settings": {"status_by": "POLL"}, **fields})
        self.server = Http1Server(self._answer)
        self.numbers, self.sids = {}, count(1)
        self.told = {"status": "delivered"}
        self.by_number = {}
        self.asked = Counter()
        self.refuses = 0

    def _answer(self, connection, seen):
        if seen.method == "POST":
            sid = f"SM{next(self.sids)}"
            self.numbers[sid] = parse_qs(seen.body.decode())["To"][0]
            return http1.respond(connection, 201, orjson.dumps({"sid": sid}))
        if self.refuses:
            return http1.respond(connection, self.refuses, b'{"status": 429, "code": 20429}')
        number = self.numbers[seen.path.rpartition("/")[2].removesuffix(".json")]
        self.asked[number] += 1
        return http1.respond(connection, 200, orjson.dumps(self.by_number.get(number, self.told)))

    def poll(self):
        """Ask what is due, once; gives how many messages that were."""
        return polling.work(self.transport)[0]


@pytest.fixture
def twilio(org):
    with Twilio(org) as scene:
        yield scene


def due():
    """Let it be time to ask, whatever the age of messages."""
    ProviderReference.objects.filter(ask_at__isnull=False).update(ask_at=clock.now())


def waits():
    """Give in how many seconds each message is asked about, None for never again."""
    now = clock.now()
    rows = ProviderReference.objects.order_by("id").values_list("ask_at", flat=True)
    return [at and round((at - now).total_seconds()) for at in rows]


def test_delivery_is_learned_by_asking(org, api, twilio):
    (sent, *_) = [twilio.send(api, factories.contact(org))]
    assert (state(), waits()) == ("SENT", [15])
    assert twilio.poll() == 0
    due()
    assert twilio.poll() == 1
    assert (events(sent), state()) == (["accepted", "sent", "delivered"], "DELIVERED")
    assert waits() == [None]
    due()
    assert twilio.poll() == 0


def test_the_account_is_asked_as_it_sends_and_told_no_address_of_ours(org, api, twilio, settings):
    settings.BASE_URL = "https://rme.example"
    TtlCache.clear_all()
    twilio.send(api, factories.contact(org))
    due()
    twilio.poll()
    send, ask = twilio.server.seen
    sid = SETTINGS["twilio"]["account_sid"]
    assert (ask.method, ask.path) == ("GET", f"/2010-04-01/Accounts/{sid}/Messages/SM1.json")
    assert ask.header("authorization") == send.header("authorization")
    assert b"StatusCallback" not in send.body


def test_an_account_that_is_called_is_not_asked(org, api, settings):
    settings.BASE_URL = "https://rme.example"
    with Twilio(org, settings={"status_by": "CALLBACK"}) as scene:
        scene.send(api, factories.contact(org))
        assert ProviderReference.objects.count() == 0
        assert b"StatusCallback=https" in scene.server.seen[0].body


def test_a_dead_number_is_suppressed(org, api, twilio):
    person = factories.contact(org)
    sent = twilio.send(api, person)
    twilio.told = {"status": "undelivered", "error_code": 30005}
    due()
    twilio.poll()
    assert (events(sent), state()) == (["accepted", "sent", "bounced"], "FAILED")
    assert Suppression.objects.get().address == person.mobile
    assert waits() == [None]


def test_no_news_is_asked_for_again_when_the_message_is_three_times_as_old(org, api, twilio):
    twilio.send(api, factories.contact(org))
    twilio.told = {"status": "sent"}
    attempt_id = Attempt.objects.get().pk
    found, age = [], timedelta(seconds=15)
    while age:
        older = ids.at_least(clock.now() - age)
        Attempt.objects.update(id=older)
        ProviderReference.objects.update(id=older)
        due()
        assert twilio.poll() == 1
        (wait,) = waits()
        found.append(wait)
        age = wait and age + timedelta(seconds=wait)
    assert found == [30, 90, 270, 810, 2430, 7290, 21870, 53595, None]
    assert sum(wait or 0 for wait in found) + 15 == polling.LAST.total_seconds()
    assert (state(), ids.moment(attempt_id) < clock.now()) == ("SENT", True)


def test_what_is_not_answered_is_asked_again_and_the_account_let_be(org, api, twilio):
    people = factories.contacts(org, 60)
    api.bulk([message(person, channel="SMS") for person in people])
    work(twilio.transport)
    twilio.refuses = 429
    due()
    asked, silent = polling.work(twilio.transport)
    assert (asked, silent) == (polling.EACH, {twilio.account.pk})
    assert polling.work(twilio.transport, silent) == (0, set())
    assert Counter(waits()) == {0: 10, 30: 50}
    twilio.refuses = 0
    due()
    polling.poll(twilio.transport, time.monotonic() + 20)
    assert set(Delivery.objects.values_list("status", flat=True)) == {"DELIVERED"}


def test_silence_opens_no_circuit(org, api, twilio):
    people = factories.contacts(org, 50)
    api.bulk([message(person, channel="SMS") for person in people])
    work(twilio.transport)
    twilio.refuses = 503
    due()
    twilio.poll()
    assert circuits.states([twilio.account.pk]) == {twilio.account.pk: circuits.State.CLOSED}


def test_a_silent_account_holds_up_no_other(org, api, twilio):
    twilio.send(api, factories.contact(org))
    ProviderAccount.objects.update(state="PAUSED", name="first")
    TtlCache.clear_all()
    with Twilio(org, name="second") as other:
        other.send(api, factories.contact(org))
        twilio.refuses = 500
        due()
        assert polling.work(other.transport) == (2, {twilio.account.pk})
    assert sorted(Delivery.objects.values_list("status", flat=True)) == ["DELIVERED", "SENT"]


def test_a_delivery_that_is_final_is_not_asked_about(org, api, twilio):
    twilio.send(api, factories.contact(org))
    Delivery.objects.update(status="DELIVERED")
    due()
    assert (twilio.poll(), twilio.asked, waits()) == (1, Counter(), [None])


def test_a_delivery_in_a_workers_hand_is_asked_about_later(org, api, twilio):
    twilio.send(api, factories.contact(org))
    Delivery.objects.update(status="SENDING")
    due()
    assert (twilio.poll(), waits()) == (1, [30])
    Delivery.objects.update(status="SENT")
    due()
    twilio.poll()
    assert (state(), waits()) == ("DELIVERED", [None])


def test_accounts_that_are_gone_are_asked_no_more_and_broken_ones_later(org, api, twilio):
    twilio.send(api, factories.contact(org))
    ProviderAccount.objects.update(credentials="{}")
    due()
    assert (twilio.poll(), waits()) == (1, [30])
    ProviderAccount.objects.all().delete()
    due()
    assert (twilio.poll(), waits()) == (1, [None])


def test_what_a_dead_worker_had_in_hand_is_asked_about_after_its_lease(org, api, twilio):
    twilio.send(api, factories.contact(org))
    due()
    (taken,) = polling._take(())
    assert (taken.reference, waits()) == ("SM1", [60])
    assert twilio.poll() == 0


def test_statements_do_not_grow_with_the_messages(org, api, twilio):
    def statements(many):
        people = factories.contacts(org, many)
        api.bulk([message(person, channel="SMS") for person in people])
        work(twilio.transport)
        twilio.by_number = {
            person.mobile: {"status": "failed", "error_code": 30006} for person in people[::2]
        }
        due()
        with CaptureQueriesContext(connection) as seen:
            assert twilio.poll() == many
        Suppression.objects.all().delete()  # the people of the next round have the same numbers
        return len([query for query in seen if "SAVEPOINT" not in query["sql"]])

    assert [statements(2), statements(20)] == [9, 9]


def test_the_task_asks_until_nothing_is_due(org, api, twilio, settings):
    settings.OUTBOUND_OPEN_HOSTS = ["127.0.0.1"]
    twilio.send(api, factories.contact(org))
    due()
    polling.poll(twilio.transport, time.monotonic() + 5)
    assert state() == "DELIVERED"
    tasks.poll()
    assert sum(twilio.asked.values()) == 1


def test_old_questions_are_deleted_with_their_ids(org, api, twilio):
    twilio.send(api, factories.contact(org))
    ProviderReference.objects.update(
        id=ids.at_least(clock.now() - references.KEPT * 2), ask_at=F("ask_at")
    )
    references.purge()
    assert ProviderReference.objects.count() == 0


def silent(connection, seen):
    """Take a question, and say nothing in time."""
    tcp.stall(connection)


def half(connection, seen):
    connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"status": "deliv')
    return False


def elsewhere(connection, seen):
    http1.respond(connection, 302, b"", {"Location": f"http://127.0.0.1:{free_port()}/"})


@pytest.mark.parametrize("fault", [silent, half, elsewhere, lambda connection, seen: False])
def test_a_broken_answer_is_no_news(org, api, fault):
    with Twilio(org, settings={"status_by": "POLL", "timeout": 1}) as scene:
        scene.send(api, factories.contact(org))
        scene.server.answer = fault
        due()
        assert polling.work(scene.transport) == (1, {scene.account.pk})
    assert (state(), waits()) == ("SENT", [30])


def test_nobody_there_is_no_news(org, api, twilio):
    twilio.send(api, factories.contact(org))
    settings = {**SETTINGS["twilio"], "status_by": "POLL"}
    settings["base_url"] = f"http://127.0.0.1:{free_port()}"
    ProviderAccount.objects.update(credentials=orjson.dumps(settings).decode())
    due()
    assert polling.work(twilio.transport) == (1, {twilio.account.pk})
    assert (state(), waits()) == ("SENT", [30])


ATTEMPT = ids.new_id()
answer = partial(Reply, 200)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (answer(body=b'{"status": "delivered", "error_code": null}'),
         [Report(ATTEMPT, "delivered")]),
        (answer(body=b'{"status": "read"}'), [Report(ATTEMPT, "open")]),
        (answer(body=b'{"status": "undelivered", "error_code": 30003}'),
         [Report(ATTEMPT, "failed", "Twilio 30003", soft=True)]),
        (answer(body=b'{"status": "failed", "error_code": 21211}'),
         [Report(ATTEMPT, "bounced", "Twilio 21211")]),
        (answer(body=b'{"status": "undelivered", "error_code": 30999}'),
         [Report(ATTEMPT, "failed", "Twilio 30999"), UnknownCode("30999")]),
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
def test_twilio_reads_what_it_is_told(reply, expected):
    own = REGISTRY["twilio"].Settings.model_validate({**SETTINGS["twilio"], "status_by": "POLL"})
    assert REGISTRY["twilio"](own).told(Taken(ATTEMPT, "SM1"), reply) == expected


def test_an_id_cannot_lead_elsewhere():
    own = REGISTRY["twilio"].Settings.model_validate({**SETTINGS["twilio"], "status_by": "POLL"})
    asked = REGISTRY["twilio"](own).question(Taken(ATTEMPT, "../Calls?x=ü"))
    assert asked.url.endswith("/Messages/..%2FCalls%3Fx%3D%C3%BC.json")
