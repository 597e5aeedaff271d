"""A worker gives one delivery so much time to be rendered."""

import orjson
import pytest

from messaging.delivery import claims, render_limit
from messaging.models import Delivery
from tests import factories
from tests.rest import events, message, work

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


def test_delivery_of_an_ended_process_fails_only_with_its_own_fence(api, org):
    result = api.send(message(factories.contact(org))).json()
    (claimed,) = claims.claim(org.pk, "EMAIL", 0).deliveries
    step = [org.pk, claimed.message_id, claimed.id, claimed.fence - 1, "EMAIL", False]
    render_limit.fail(orjson.dumps(step))
    assert Delivery.objects.get().status == "SENDING"  # another worker has it
    step[3] = claimed.fence
    render_limit.fail(orjson.dumps(step))
    render_limit.fail(orjson.dumps(step))
    stored = Delivery.objects.values_list("status", "reason", "detail").get()
    assert stored == ("FAILED", "TEMPLATE_ERROR", "rendering takes too long")
    assert events(result["messageId"]) == ["accepted", "failed"]
