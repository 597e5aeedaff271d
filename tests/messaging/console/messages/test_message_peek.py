"""The core facts of a message beside its list."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.models import Delivery
from rme.core import ids
from rme.core.cache import TtlCache
from rme.tenants.models import Membership
from tests import factories
from tests.messaging.console.conftest import url
from tests.rest import Api, message, work
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def sent(org):
    """Send one message to three people; return its id."""
    people = factories.contacts(org, 3)
    to = [{"contactId": str(each.pk)} for each in people]
    Api(org).send(message(people[0], to=to))
    work()
    return Delivery.objects.first().message_id


def text_of(client, message_id, query=""):
    return client.get(f"{url('message_peek', message_id)}{query}").content.decode()


def test_peek_shows_the_outcome_for_one_recipient(root, sent):
    first, third = text_of(root, sent), text_of(root, sent, "?recipient=2")
    assert ("First0 Last0" in first, "First2 Last2" in first) == (True, False)
    assert ("First0 Last0" in third, "First2 Last2" in third) == (False, True)
    parts = ["Delivered on", "Timeline", "Email", "Transactional", "simulator"]
    assert [part for part in parts if part not in first] == []
    assert "<html" not in first


def test_peek_masks_addresses_for_the_support_role(org, sent):
    text = text_of(person("s", org, Membership.Role.SUPPORT), sent)
    assert "p…@simulator.rme.test" in text
    assert "person0@" not in text


def test_stranger_and_unknown_message_get_404(root, org, sent):
    stranger = person("x", factories.organization("other"), Membership.Role.OWNER)
    assert stranger.get(url("message_peek", sent)).status_code == 404
    assert stranger.get(url("message_peek", sent, org="other")).status_code == 404
    assert root.get(url("message_peek", ids.new_id())).status_code == 404
    assert root.get(f"{url('message_peek', sent)}?recipient=3").status_code == 404


def test_peek_of_three_recipients_needs_the_statements_of_one(root, org, sent):
    Api(org).send(message(factories.contact(org)))
    work()
    alone = Delivery.objects.order_by("-pk").first().message_id
    text_of(root, sent)  # the session keeps the organization
    counts = []
    for message_id in (alone, sent):
        TtlCache.clear_all()
        with CaptureQueriesContext(connection) as captured:
            text_of(root, message_id)
        counts.append(len(captured))
    assert counts == [10, 10]
