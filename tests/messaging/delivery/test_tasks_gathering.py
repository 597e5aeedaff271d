"""Messages that arrive one by one leave together."""

import pytest

from messaging.accept import Call, Submission, accept
from messaging.accept.requests import MESSAGE
from messaging.delivery import claims, tasks
from messaging.models import Attempt, Delivery
from rme.core.http.parsing import parse
from rme.core.outbound import outbound_transport
from tests import factories
from tests.rest import message
from tests.sending import PROCESS

pytestmark = pytest.mark.django_db(transaction=True)


def send_ready(*events):
    """Send what is ready; in each pause comes one of the events. Return the pauses' seconds."""
    seconds, coming = [], list(events)

    def pause(length):
        seconds.append(length)
        if coming:
            coming.pop(0)()

    tasks.send("EMAIL", outbound_transport(), PROCESS, pause)
    return seconds


def send(row, person):
    body = parse(MESSAGE, message(person))
    return accept(Call(factories.caller(row), Submission(body), "r"))


def test_messages_arriving_during_a_run_leave_together_in_its_next_window(org):
    first, *others = factories.contacts(org, 4)
    send(org, first)
    seconds = send_ready(lambda: [send(org, person) for person in others])
    assert set(Delivery.objects.values_list("status", flat=True)) == {"DELIVERED"}
    assert seconds == [tasks.GATHER_SECONDS] * 2
    windows = Attempt.objects.values_list("started_at", flat=True)
    assert (len(windows), len(set(windows))) == (4, 2)


def test_full_claim_is_sent_without_a_pause(org):
    for number in range(claims.FIRST_ORGANIZATIONS + 1):
        row = factories.organization(f"other-{number}")
        factories.welcome(row)
        send(row, factories.contact(row))
    seconds = send_ready()
    assert set(Delivery.objects.values_list("status", flat=True)) == {"DELIVERED"}
    assert seconds == [tasks.GATHER_SECONDS]
