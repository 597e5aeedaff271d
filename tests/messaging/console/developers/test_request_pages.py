"""The page of the request log."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from messaging.console.developers import request_pages
from rme.core import errors, ids
from rme.core.cache import TtlCache
from rme.tenants.models import Application, Membership, RequestLogEntry
from tests import factories
from tests.messaging.console.conftest import url
from tests.rest import Api, message
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db
REQUEST = "7b0f9f0e-6a53-4a0b-9a53-0d6d8f3c2a11"
SENDING = "/rme/v1/messages"


@pytest.fixture
def developer(org):
    return person("dev", org, Membership.Role.DEVELOPER)


def entry(org, **fields):
    values = {
        "organization_id": org.pk, "application_id": 1, "request_id": ids.new_id(),
        "method": "POST", "route": SENDING, "status": 202, "code": "", "microseconds": 12_345,
    }  # fmt: skip
    return RequestLogEntry.objects.create(**{**values, **fields})


def listed(client, query=""):
    return [line.row.pk for line in client.get(url("requests") + query).context["lines"]]


def test_from_a_request_id_to_its_line_and_to_the_message(developer, org):
    api = Api(org)
    sent = api.send(message(factories.contact(org))).json()["messageId"]
    key = api.application.pk
    refused = {"status": 403, "code": "SUPPRESSED", "message_id": sent}
    row = entry(org, application_id=key, request_id=REQUEST, **refused)
    entry(org)
    lead = developer.get(reverse("search"), {"q": REQUEST})
    assert lead["Location"] == f"{url('requests')}?request_id={REQUEST}"
    found = developer.get(lead["Location"])
    assert [line.row.pk for line in found.context["lines"]] == [row.pk]
    parts = [
        "POST /rme/v1/messages", REQUEST, "403", errors.by_code()["SUPPRESSED"].default,
        "12.3 ms", "tests",
    ]  # fmt: skip
    further = [
        "SUPPRESSED", url("message", sent), reverse("admin:tenants_application_change", args=[key])
    ]  # fmt: skip
    text = found.content.decode()
    assert [part for part in parts if part not in text] == []
    assert f'href="{url("request", row.pk)}"' in text
    page = developer.get(url("request", row.pk)).content.decode()
    assert [part for part in (*parts, *further) if part not in page] == []
    assert developer.get(url("request", ids.new_id())).status_code == 404
    Application.objects.all().delete()
    assert "Deleted" in developer.get(url("requests")).content.decode()


def test_filters_combine_and_pages_follow_each_other(developer, org):
    key = Api(org).application.pk
    rows = [entry(org, status=404 if n % 10 else 202, application_id=key + n) for n in range(53)]
    keys = [row.pk for row in reversed(rows)]
    assert listed(developer) == keys[:50]
    assert listed(developer, f"?after={keys[49]}") == keys[50:]
    assert listed(developer, "?status_class=2") == [keys[n] for n in (2, 12, 22, 32, 42, 52)]
    assert listed(developer, f"?status_class=2&application_id={key}") == [keys[52]]
    assert listed(developer, "?route=/rme/v1/health") == []
    assert len(listed(developer, f"?route={SENDING}")) == 50
    assert listed(developer, "?until=2020-01-01T00:00") == []
    for wrong in ("?request_id=x", "?after=x", "?status_class=9", "?application_id=0&route=%00"):
        assert len(listed(developer, wrong)) == 50
    other = factories.organization("other")
    entry(other, request_id=REQUEST)
    assert listed(developer, f"?request_id={REQUEST}") == []


def test_the_page_asks_as_often_for_3_requests_as_for_1(developer, org):
    developer.get(url("requests"))  # the session keeps the organization
    counts = []
    for more in (1, 2):
        for _ in range(more):
            entry(org)
        for query in ("", "?status_class=2"):
            TtlCache.clear_all()
            with CaptureQueriesContext(connection) as captured:
                developer.get(url("requests") + query)
            counts.append(len(captured))
    assert counts == [10, 11] * 2


def test_routes_equal_those_of_the_api():
    assert SENDING in request_pages.routes()
    assert "/rme/v1/messages/{message_id}" in request_pages.routes()
    assert not any("<" in each for each in request_pages.routes())


def test_page_reports_a_disabled_log(developer, settings):
    settings.REQUEST_LOG_DAYS = 0
    assert "switched the log off" in developer.get(url("requests")).content.decode()
