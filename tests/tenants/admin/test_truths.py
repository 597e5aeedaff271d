"""What forms and empty lists say: no Python object, no code to type, no filter that isn't there."""

import re

import pytest
from django.contrib.admin.models import LogEntry

from messaging.models import Category
from push.models import Device
from rme.tenants.models import Organization
from tests import factories
from tests.tenants.admin.scene import FORMED, page, person

pytestmark = pytest.mark.django_db
MOST_BYTES = 120_000
ADDED = [model for model in FORMED if model is not LogEntry]
"""The models whose rows people add on pages of the admin."""


@pytest.fixture
def org():
    return factories.organization()


@pytest.fixture
def root():
    return person("root", is_superuser=True)


@pytest.mark.parametrize("model", ADDED, ids=lambda model: model._meta.label)
def test_form_to_add_shows_no_object_of_python(root, org, model):
    answer = root.get(page(model, "add"), follow=True)
    assert (answer.status_code, "adminform" in answer.context) == (200, True)
    assert " object at 0x" not in answer.content.decode()
    assert "DatabaseDefault" not in answer.content.decode()


@pytest.mark.parametrize(
    ("model", "query", "says"),
    [
        (Device, "", "There are no devices yet"),
        (Device, "?organization=acme", "There are no devices yet"),
        (Device, "?q=x", "Nothing matches"),
        (Category, "?organization=acme&regime__exact=MARKETING", "Nothing matches"),
    ],
)
def test_empty_list_names_a_filter_only_if_there_is_one(root, org, model, query, says):
    shown = root.get(f"{page(model, 'changelist')}{query}").content.decode()
    assert [each for each in ("Nothing matches", "There are no") if each in shown] == [
        says[: len("There are no")] if says.startswith("There") else says
    ]


def test_zone_language_region_and_colour_are_chosen(root, org):
    shown = root.get(page(Organization, "change", org.pk))
    text = shown.content.decode()
    for name in ("zone", "language", "region"):
        assert re.search(f'<select [^>]*name="{name}"', text)
    assert '<option value="CH">Switzerland' in text
    assert '<input type="color" name="brand_color"' in text
    assert len(shown.content) < MOST_BYTES


def test_stored_zone_that_is_not_offered_stays(root, org):
    Organization.objects.update(zone="Etc/GMT-1", language="en_001")
    text = root.get(page(Organization, "change", org.pk)).content.decode()
    assert "<option selected>Etc/GMT-1" in text
    assert "<option selected>en_001" in text


def test_forms_of_models_warn_before_what_was_typed_is_lost(root, org):
    assert "console/forms.js" in root.get(page(Category, "add")).content.decode()


@pytest.mark.parametrize("path", ["/admin/nowhere/", "/admin/console/nobody/messages/"])
def test_address_that_leads_nowhere_is_a_page_with_a_way_on(root, org, path):
    answer = root.get(path)
    text = answer.content.decode()
    assert answer.status_code == 404
    assert "<h1>Page not found</h1>" in text
    assert 'id="nav-sidebar"' in text
    assert ">Go to Home</a>" in text


def test_what_a_role_may_not_open_says_so(org):
    answer = person("p", org, "SUPPORT").get("/admin/console/acme/audit/")
    assert answer.status_code == 403
    assert "Your role doesn&#x27;t allow this" in answer.content.decode()


def test_stranger_gets_the_plain_page(client, org):
    answer = client.get("/p/nothing-here/at/all")
    assert answer.status_code == 404
    assert "nav-sidebar" not in answer.content.decode()
    assert "style-src 'self'" in answer["Content-Security-Policy"]
