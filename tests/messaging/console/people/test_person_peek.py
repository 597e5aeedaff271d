"""The core facts of a person beside the list of contacts."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from rme.core import ids
from rme.core.cache import TtlCache
from rme.tenants.models import Membership
from tests import factories
from tests.messaging.console.conftest import url
from tests.rest import Api, message, work
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db


def text_of(client, contact):
    return client.get(url("person_peek", contact.pk)).content.decode()


def test_peek_shows_addresses_reachability_and_messages(root, org):
    ada = factories.contact(org, language="de_CH", zone="Europe/Zurich")
    assert "No messages yet." in text_of(root, ada)
    Api(org).send(message(ada))
    work()
    text = text_of(root, ada)
    parts = [ada.email, ada.mobile, "German (Switzerland)", "Europe/Zurich", "Partly reachable"]
    assert [part for part in (*parts, "welcome", "Delivered") if part not in text] == []
    assert "<html" not in text
    support = person("s", org, Membership.Role.SUPPORT)
    assert ada.email not in text_of(support, ada)


def test_stranger_and_unknown_person_get_404(root, org):
    ada = factories.contact(org)
    stranger = person("x", factories.organization("other"), Membership.Role.OWNER)
    assert stranger.get(url("person_peek", ada.pk)).status_code == 404
    assert stranger.get(url("person_peek", ada.pk, org="other")).status_code == 404
    for unknown in (ids.new_id(), "x" * 65):
        assert root.get(url("person_peek", unknown)).status_code == 404


def test_peek_of_five_messages_needs_the_statements_of_one(root, org):
    ada, counts = factories.contact(org), []
    text_of(root, ada)  # the session keeps the organization
    for more in (1, 4):
        for _ in range(more):
            Api(org).send(message(ada))
        work()
        TtlCache.clear_all()
        with CaptureQueriesContext(connection) as captured:
            text_of(root, ada)
        counts.append(len(captured))
    assert counts == [15, 15]
