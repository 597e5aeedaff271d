"""The languages that an organization writes in: chosen in its settings, and offered by forms."""

import re

import pytest

from messaging.console.people.contact_form import ContactForm
from rme.crm.models import Contact
from rme.tenants import organizations
from rme.tenants.models import Membership, Organization
from rme.tenants.organizations import languages
from tests import audited, factories
from tests.messaging.console.conftest import url
from tests.tenants.admin.scene import page, person

pytestmark = pytest.mark.django_db
FORM = {
    "name": "Acme", "zone": "UTC", "language": "en_US", "region": "US", "brand_color": "#112233",
    "memberships-TOTAL_FORMS": "0", "memberships-INITIAL_FORMS": "0",
}  # fmt: skip


@pytest.fixture
def owner(org):
    return person("olga", org, Membership.Role.OWNER)


def choose(org, *codes):
    Organization.objects.filter(pk=org.pk).update(languages=codes)


def settings_page(org):
    return page(Organization, "change", org.pk)


def offered_codes(html, name):
    """Return the values of the options of a list."""
    select = re.search(rf'<select [^>]*name="{name}".*?</select>', html, re.DOTALL)
    assert select is not None
    return [each for each in re.findall(r'<option value="([^"]*)"', select[0]) if each]


def test_owner_adds_and_removes_languages(owner, org):
    owner.post(settings_page(org), {**FORM, "languages": ["de", "", "fr", "de"]})
    org.refresh_from_db()
    assert org.languages == ["de", "fr"]
    shown = owner.get(settings_page(org)).content.decode()
    assert re.findall(r'name="languages" value="(\w+)" checked> ([^<]+)<', shown) == [
        ("de", "German"),
        ("fr", "French"),
    ]
    owner.post(settings_page(org), {**FORM, "languages": ["fr"]})
    org.refresh_from_db()
    assert org.languages == ["fr"]
    assert audited.lines()[-1] == "languages: ['de', 'fr'] → ['fr']"


def test_languages_are_typed_by_name_or_code(owner, org):
    owner.post(settings_page(org), {**FORM, "languages": ["german, fr_CH ,", ""]})
    org.refresh_from_db()
    assert org.languages == ["de", "fr_CH"]


def test_unknown_language_is_refused(owner, org):
    answer = owner.post(settings_page(org), {**FORM, "languages": ["xx"]})
    assert set(answer.context["adminform"].form.errors) == {"languages"}
    org.refresh_from_db()
    assert org.languages == []


def test_organization_without_a_choice_is_offered_all_languages(org):
    assert languages.offered(organizations.get(org.pk)) == languages.choices()


def test_chosen_languages_and_the_organizations_are_offered_by_name(org):
    choose(org, "fr", "de")
    assert languages.offered(organizations.get(org.pk), "it", "") == [
        ("en_US", "English (United States)"),
        ("fr", "French"),
        ("de", "German"),
        ("it", "Italian"),
    ]


def test_studio_offers_the_chosen_languages(owner, org):
    choose(org, "de", "fr")
    shown = owner.get(url("template_new")).content.decode()
    assert offered_codes(shown, "language") == ["en_US", "fr", "de"]
    template = f"{url('template', 'welcome')}?language=en_US&channel=EMAIL"
    answer = owner.get(template)
    assert answer.context["new_languages"] == [("fr", "French"), ("de", "German")]
    assert offered_codes(answer.content.decode(), "to_language") == ["en_US", "fr", "de"]


def test_contact_keeps_a_language_that_is_not_offered(org):
    choose(org, "de")
    form = ContactForm(None, factories.contact(org, language="it"))
    assert offered_codes(str(form["language"]), "language") == ["en_US", "de", "it"]
    form = ContactForm({"last_name": "Lovelace", "language": "it"}, Contact.objects.get())
    assert form.is_valid(), form.errors
