"""The histograms of a message's way: what is counted, and under which labels."""

import pytest

from messaging.models import Delivery
from tests import factories
from tests.messaging.webhooks.webhook_scene import dispatch_all, endpoint
from tests.rest import message, work
from tests.scrape import labels, samples

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback", "counting")]


def test_acceptance_is_measured_without_rejections_and_waiting(api, org):
    person = factories.contact(org)
    bodies = [message(person), {**message(person), "channel": "FAX"}]
    statuses = [api.send(body).status_code for body in bodies]
    statuses.append(api.send(message(person), Prefer="wait=1").status_code)
    statuses.append(api.bulk([message(person)]).status_code)
    assert statuses == [202, 400, 202, 202]
    assert samples("rme_accept_seconds_count") == {
        labels(path="/rme/v1/messages"): 1,
        labels(path="/rme/v1/messages/bulk"): 1,
    }


def test_a_message_is_measured_from_its_acceptance_to_the_webhook(api, org, receiver):
    endpoint(org, f"{receiver.url}hook", "message.sent")
    people = factories.contacts(org, 2)
    for person in people:
        api.send(message(person))
    # one was scheduled for half a minute ago: its time to the provider begins there
    late = Delivery.objects.filter(contact_id=str(people[0].pk))
    late.update(scheduled_for=late.get().due_at.replace(year=2020))
    work()
    dispatch_all()
    sent = labels(method="POST", path="/rme/v1/messages")
    assert samples("rme_request_duration_seconds_count")[sent] == 2
    waited = labels(channel="EMAIL", priority="0")
    assert samples("rme_time_to_provider_seconds_count") == {waited: 2}
    buckets = samples("rme_time_to_provider_seconds_bucket")
    assert buckets[waited | labels(le="14400.0")] == 1
    provider = labels(provider="simulator", outcome="Accepted")
    assert samples("rme_provider_seconds_count") == {provider: 2}
    assert samples("rme_webhook_seconds_count") == {labels(result="ok"): 2}
