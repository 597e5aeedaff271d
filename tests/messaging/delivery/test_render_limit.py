"""A delivery that renders for too long fails alone."""

import pytest

from messaging.content.outgoing import OutgoingRenderer
from messaging.delivery import tasks
from messaging.delivery.sending_process import SendingProcess
from messaging.models import Delivery
from rme.core.outbound import outbound_transport
from tests import factories
from tests.messaging.content import hanging_renders
from tests.rest import message, work

pytestmark = pytest.mark.django_db

LOOPS = "{% for i in (1..n) %}{% assign x = i | times: 3 | plus: 2 | append: 'y' %}{% endfor %}."


def test_delivery_rendering_too_long_fails_alone(api, org, settings):
    settings.RENDER_SECONDS = 0.02  # the template's own limit is a quarter of a second
    factories.template(org, name="loops", subject="Hello", text=LOOPS)
    named = {"template": {"name": "loops", "language": "en_US"}}
    sent = [
        message(person, **named, context={"variables": {"n": n}})
        for person, n in zip(factories.contacts(org, 3), (1, 9000, 1), strict=True)
    ]
    results = api.bulk(sent).json()["results"]
    work()
    found = {
        str(message_id): how
        for message_id, *how in Delivery.objects.values_list(
            "message_id", "status", "reason", "detail"
        )
    }
    fine = ["DELIVERED", None, None]
    late = ["FAILED", "TEMPLATE_ERROR", "rendering takes too long"]
    assert [found[result["messageId"]] for result in results] == [fine, late, fine]


def test_delivery_waits_while_the_machine_runs_no_process_apart(api, org):
    factories.template(org, name="loops", subject="Hello", text=LOOPS)
    template = {"name": "loops", "language": "en_US"}
    person = factories.contact(org)
    api.send(message(person, template=template, context={"variables": {"n": 9000}}))
    process = SendingProcess()
    process.renderer = OutgoingRenderer(hanging_renders.leave)
    tasks.send("EMAIL", outbound_transport(), process)
    delivery = Delivery.objects.get()
    assert (delivery.status, delivery.detail) == ("ACCEPTED", "the process that renders can't run")
