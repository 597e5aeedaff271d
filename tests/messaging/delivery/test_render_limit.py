"""A delivery that renders for too long fails alone."""

import pytest

from messaging.models import Delivery
from tests import factories
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
