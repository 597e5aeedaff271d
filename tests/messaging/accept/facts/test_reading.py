"""Facts as values of the domain, and the number of statements that read them."""

import datetime as dt

import pytest

from messaging.accept.facts.reading import read_facts
from messaging.accept.requests import MESSAGE
from messaging.accept.send_request import CallerMessage
from messaging.domain.channels import Channel
from messaging.domain.planning import RequestedTemplate
from messaging.domain.timing import FixedTime, LocalTime, OrganizationTime
from rme.core.http.parsing import parse
from rme.tenants import organizations
from rme.tenants.oauth.authentication import Caller
from tests import factories
from tests.rest import message

pytestmark = pytest.mark.django_db


def read(org, *bodies):
    caller = Caller(organizations.get(org.pk), 1, 2, test=False)
    return read_facts([CallerMessage(caller, parse(MESSAGE, body)) for body in bodies])


@pytest.mark.promise("schedule-1")
@pytest.mark.parametrize(
    ("name", "zone"), [("Europe/Zurich", "Europe/Zurich"), ("Not/AZone", "UTC"), ("", "UTC")]
)
def test_contact_without_a_known_zone_is_in_its_organization_s(org, name, zone):
    person = factories.contact(org, zone=name, mobile="+1 212 555 0100")
    (request,) = read(org, message(person)).requests
    contact = request.draft.recipients[0].contact
    assert (contact.id, contact.zone) == (str(person.pk), zone)
    assert (contact.email, contact.phone) == (person.email, None)  # the request is for email


@pytest.mark.parametrize(
    ("schedule", "value"),
    [
        ({"mode": "LOCAL", "time": "09:30"}, LocalTime(dt.time(9, 30))),
        (
            {"mode": "ORG", "time": "09:30", "date": "2026-12-01"},
            OrganizationTime(dt.time(9, 30), dt.date(2026, 12, 1)),
        ),
        (
            {"mode": "AT", "at": "2026-12-01T09:30:00Z"},
            FixedTime(dt.datetime(2026, 12, 1, 9, 30, tzinfo=dt.UTC)),
        ),
    ],
)
def test_request_is_a_value(org, schedule, value):
    person = factories.contact(org)
    body = message(person, schedule=schedule, context={"variables": {"note": "x"}})
    request = read(org, body).requests[0].draft.outline.request
    assert (request.channels, request.schedule) == ((Channel.EMAIL,), value)
    assert (request.template, request.variables) == (
        RequestedTemplate("welcome", "en_US"),
        {"note": "x"},
    )


def test_refused_request_costs_no_statement(org, django_assert_num_queries):
    person = factories.contact(org)
    read(org, message(person))  # policy and organization are cached
    with django_assert_num_queries(0):
        read(org, message(person, category="NOWHERE"))
