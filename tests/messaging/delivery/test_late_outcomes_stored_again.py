"""Outcomes that are stored again: the answer to the first commit was lost, or the send loop ended
before it had stored them.
"""

from time import monotonic

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.db import OperationalError, connection

from messaging.content.outgoing import OutgoingRenderer
from messaging.delivery import claims, deliver, prepare, record
from messaging.delivery.record import Answered
from messaging.domain.accounts.admission import WINDOW
from messaging.feedback import receipts
from messaging.models import Attempt, Event, WebhookDelivery, WebhookEndpoint
from messaging.store import event_view
from messaging.store.attempts import AttemptOutcomes
from rme.core import cache
from rme.core.db import clock, prepared_statements
from rme.core.outcomes import Accepted, Retryable
from rme.transport import Transport
from tests import factories
from tests.clocks import StandingClock
from tests.messaging.delivery.deliver_scene import Scripted, delivery
from tests.messaging.delivery.slow_scene import statuses
from tests.rest import message
from tests.sending import PROCESS


def send_all(org):
    batches = claims.claim_many("EMAIL", 0, {org.pk: claims.BATCH_LIMIT})
    deliver.deliver(batches, Transport(), PROCESS, receipts.apply)


def outcomes():
    return list(Attempt.objects.order_by("id").values_list("provider", "outcome"))


@pytest.mark.django_db(transaction=True)
def test_outcomes_are_stored_if_filling_the_next_window_fails(api, org, script, monkeypatch):
    script("mail", Accepted())
    api.bulk([message(person) for person in factories.contacts(org, WINDOW + 5)])
    standing = StandingClock(monkeypatch, cache)

    def lost(execute, *arguments):
        standing.advance(3)  # the next window reads the organization's accounts again
        if Scripted.sent:
            raise OperationalError("lost")
        return execute(*arguments)

    with connection.execute_wrapper(lost), pytest.raises(OperationalError):
        send_all(org)
    assert PROCESS.late_outcomes.finish(20)
    assert statuses() == {"SENT": WINDOW, "SENDING": 5}
    assert outcomes() == [("mail", "Accepted")] * WINDOW


@pytest.mark.django_db(transaction=True)
def test_outcomes_are_stored_if_the_task_is_ended_before_applying_them(
    api, org, script, monkeypatch
):
    script("mail", Accepted())
    api.send(message(factories.contact(org)))

    def ended():  # as Celery ends a task: anywhere
        if Scripted.sent:
            raise SoftTimeLimitExceeded
        return monotonic()

    monkeypatch.setattr(deliver, "monotonic", ended)
    with pytest.raises(SoftTimeLimitExceeded):
        send_all(org)
    assert PROCESS.late_outcomes.finish(20)
    assert (statuses(), outcomes()) == ({"SENT": 1}, [("mail", "Accepted")])


@pytest.mark.django_db(transaction=True)
def test_failover_with_lost_commit_answer_stores_only_attempts_made(api, org, script):
    script("first", Retryable("busy"), priority=0)
    script("second", Accepted(), priority=1)
    api.send(message(factories.contact(org)))

    def lost(execute, *arguments):
        result = execute(*arguments)
        if Scripted.sent:
            raise OperationalError("the answer was lost")
        return result

    with connection.execute_wrapper(lost), pytest.raises(OperationalError):
        send_all(org)
    assert PROCESS.late_outcomes.finish(20)
    assert outcomes() == [("first", "Retryable")]
    assert (delivery().status, delivery().provider) == ("ACCEPTED", "first")


@pytest.mark.django_db
def test_storing_an_outcome_again_keeps_the_sent_event_and_its_webhook(api, org, script):
    script("only", Accepted("1"))
    WebhookEndpoint.objects.create(
        organization=org, url="https://hooks.example/", types=["message.*"], secret="secret"
    )
    api.send(message(factories.contact(org)))
    progress = prepare.BatchProgress(claims.claim(org.pk, "EMAIL", 0), None, OutgoingRenderer())
    progress.contacts = prepare.read_ahead([progress.batch])[org.pk]
    progress.fill(1, monotonic() + 60)
    [outgoing] = progress.window
    with prepared_statements.transaction() as batch:
        record.record([], AttemptOutcomes(), batch, record.begin_attempts([outgoing]))
    outgoing.attempts[0].outcome = Accepted("1")
    outgoing.apply_outcomes(now=clock.now(), may_fail_over=False)
    answered = Answered(outgoing, outgoing.take_attempts())
    for _ in range(2):
        with prepared_statements.transaction() as batch:
            record.record([outgoing], record.outcomes([answered]), batch)
    assert (delivery().status, Attempt.objects.get().outcome) == ("SENT", "Accepted")
    events = event_view.of_rows([delivery()], [Attempt.objects.get()], Event.objects.all())
    assert [each.type for each in events] == ["accepted", "sent"]
    webhooks = WebhookDelivery.objects.order_by("type").values_list("event_id", "type")
    assert list(webhooks) == [
        (delivery().pk, "message.accepted"),
        (Attempt.objects.get().pk, "message.sent"),
    ]
