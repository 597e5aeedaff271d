"""Every page of the console says nothing that no catalogue has."""

from collections.abc import Iterator

import pytest
from django.db import transaction
from django.test import Client

from rme.tenants.models import User
from tests.browser.test_every_page import scene
from tests.tenants.admin.addresses import Addresses
from tests.tenants.admin.scene import person
from tests.words import brackets

pytestmark = pytest.mark.django_db
FORMS = ("/admin/console/", "/add/", "/settings/")
"""Where forms are sent without a value, for what they say of it."""
UNMARKED = {
    "Ga", "Ga (Ghana)",  # a language with too short a name to be looked for in texts
    "Postmark", "Resend", "Mailgun", "Mailjet", "Brevo", "Mailtrap", "Mailchimp Transactional",
    "Postal", "Scaleway", "Unisender Go",  # providers
    "Salesforce", "Salesforce + Blackthorn Events", "Salesforce + Fonteva",
    "Odoo 19 with Helpdesk",  # platforms
    "JSON Schema", "curl", "Python",
    "category", "to[0].contactId", "metadata",  # fields of a request
    "to: is required", "is required",  # what the API answers to one
    "message.*", "message.* (⟦all events of messages⟧)",  # a type of events
}  # fmt: skip
"""Names, and texts of the API, which no catalogue has."""


@pytest.fixture
def bracketed(tmp_path, settings):
    """Show pages in the language of brackets."""
    brackets.install(tmp_path)
    settings.LOCALE_PATHS = [tmp_path]
    settings.BROWSER_MIDDLEWARE = [*settings.BROWSER_MIDDLEWARE, "tests.words.brackets.middleware"]


def pages(client: Client, path: str) -> Iterator[tuple[str, str]]:
    """Yield the page at an address, and what its form says without a value."""
    answer = client.get(path)
    if answer.status_code != 200 or not answer["Content-Type"].startswith("text/html"):
        return
    html = answer.content.decode()
    yield path, html
    if 'method="post"' in html and any(each in path for each in FORMS):
        with transaction.atomic():
            refused = client.post(path)
            transaction.set_rollback(True)
        if refused["Content-Type"].startswith("text/html"):
            yield f"POST {path}", refused.content.decode()


def test_texts_of_the_console_are_in_a_catalogue(bracketed, org):
    root = person("root", is_superuser=True)
    scene(org)
    addresses = Addresses(org, User.objects.get(username="root")).all()
    names, page_of = [], {}
    for address in addresses:
        if address.startswith("/admin/") and not address.startswith("/admin/logout"):
            for name, html in pages(root, address):
                names.append(name)
                for text in brackets.unmarked(html):
                    page_of.setdefault(text, name)
    unmarked = {text: page_of[text] for text in brackets.without_data(page_of)}
    assert {*unmarked} == UNMARKED
    assert len(names) > 200


def test_answers_of_the_api_stay_english(bracketed, org, api):
    root = person("root", is_superuser=True)
    assert brackets.OPEN in root.get("/admin/").content.decode()
    answer = api.call("POST", "/suppressions", {"channel": "EMAIL"})
    assert answer.status_code == 400
    assert brackets.OPEN not in answer.content.decode()


def test_words_outside_of_brackets_are_found():
    html = (
        '<p title="Name">⟦Hello⟧ there</p><p translate="no">Hello <b>you</b></p>'
        '<code>Post it</code><span class="material-symbols-outlined">mail</span>'
        '<input type="submit" value="Save"><p>⟦All of <a href="/">this page</a> here⟧ again</p>'
    )
    assert brackets.unmarked(html) == ["Name", "⟦Hello⟧ there", "Save", "⟦ here⟧ again"]


def test_data_are_no_words(org):
    texts = [f"⟦Pages⟧ of {org.name}", org.name, "French (Canada)", "Something else"]
    assert brackets.without_data(texts) == [f"⟦Pages⟧ of {org.name}", "Something else"]
