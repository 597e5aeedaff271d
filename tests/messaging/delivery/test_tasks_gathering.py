"""Messages that arrive one by one leave together."""

import time
from types import SimpleNamespace

import pytest

from messaging.accept import Call, Submission, accept
from messaging.accept.requests import MESSAGE
from messaging.delivery import claims, tasks
from messaging.models import Attempt, Delivery
from rme.core.http.parsing import parse
from tests import factories
from tests.rest import message
from tests.sending import send_ready

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def pauses(monkeypatch):
    """Replace the pause of a run: gives what happens in each, and how long each was."""
    made = SimpleNamespace(events=[], seconds=[])

    def sleep(seconds):
        made.seconds.append(seconds)
        if made.events:
            made.events.pop(0)()

    monkeypatch.setattr(tasks, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    return made


def send(row, person):
    body = parse(MESSAGE, message(person))
    return accept(Call(factories.caller(row), Submission(body), "r"))


def test_messages_arriving_during_a_run_leave_together_in_its_next_window(org, pauses):
    first, *others = factories.contacts(org, 4)
    send(org, first)
    pauses.events = [lambda: [send(org, person) for person in others]]
    send_ready("EMAIL")
    assert set(Delivery.objects.values_list("status", flat=True)) == {"DELIVERED"}
    assert pauses.seconds == [tasks.GATHER_SECONDS] * 2
    windows = Attempt.objects.values_list("started_at", flat=True)
    assert (len(windows), len(set(windows))) == (4, 2)


def test_full_claim_is_sent_without_a_pause(org, pauses):
    for number in range(claims.FIRST_ORGANIZATIONS + 1):
        row = factories.organization(f"other-{number}")
        factories.welcome(row)
        send(row, factories.contact(row))
    send_ready("EMAIL")
    assert set(Delivery.objects.values_list("status", flat=True)) == {"DELIVERED"}
    assert pauses.seconds == [tasks.GATHER_SECONDS]
