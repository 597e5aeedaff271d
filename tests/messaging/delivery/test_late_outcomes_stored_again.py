"""Outcomes that are stored again, because the answer to the first commit was lost."""

from time import monotonic

import pytest

from messaging.delivery import claims, prepare, record
from messaging.delivery.record import Answered
from messaging.models import Attempt, Event, WebhookDelivery, WebhookEndpoint, derived_events
from rme.core.db import clock, prepared_statements, sql
from rme.core.outcomes import Accepted
from tests import factories
from tests.messaging.delivery.deliver_scene import delivery
from tests.rest import message

pytestmark = pytest.mark.django_db


def test_an_outcome_that_is_stored_again_leaves_the_event_sent_and_its_webhook(api, org, script):
    script("only", Accepted("1"))
    WebhookEndpoint.objects.create(
        organization=org, url="https://hooks.example/", types=["message.*"], secret="secret"
    )
    api.send(message(factories.contact(org)))
    progress = prepare.BatchProgress(claims.claim(org.pk, "EMAIL", 0), None)
    progress.contacts = prepare.read_ahead([progress.batch])[org.pk]
    progress.fill(1, monotonic() + 60)
    [outgoing] = progress.window
    sql.execute({"attempts": record.begin_attempts([outgoing])})
    outgoing.attempts[0].outcome = Accepted("1")
    outgoing.apply_outcomes(now=clock.now(), may_fail_over=False)
    answered = Answered(outgoing, outgoing.take_attempts())
    for _ in range(2):
        with prepared_statements.transaction():
            record.record([outgoing], record.outcomes([answered]))
    assert (delivery().status, Attempt.objects.get().outcome) == ("SENT", "Accepted")
    events = derived_events.of_rows([delivery()], [Attempt.objects.get()], Event.objects.all())
    assert [each.type for each in events] == ["accepted", "sent"]
    webhooks = WebhookDelivery.objects.order_by("type").values_list("event_id", "type")
    assert list(webhooks) == [
        (delivery().pk, "message.accepted"),
        (Attempt.objects.get().pk, "message.sent"),
    ]
