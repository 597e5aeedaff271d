"""Email addresses and phone numbers in files of contacts: stored in the form that look-ups find."""

import io
from importlib import import_module

import pytest
from django.apps import apps

from rme.core.cache import TtlCache
from rme.crm import people
from rme.crm.models import Contact
from rme.crm.records import import_file
from rme.tenants import imports
from tests import factories

pytestmark = pytest.mark.django_db


def run(org, column, cell, **options):
    """Import one contact with a cell; return why the row was refused, if it was."""
    file = io.BytesIO(f"lastName,{column}\nL,{cell}\n".encode())
    made = import_file.prepare(org.pk, Contact, "f.csv", file, started_by="grace")
    imports.begin(made, ["lastName", column], dry_run=False, **options)
    while import_file.import_next_part():
        pass
    return [(field, why) for _, field, why in list(imports.rejected_rows(made))[1:]]


@pytest.mark.parametrize(
    ("region", "digits", "cell", "stored"),
    [
        ("DE", "INTERNATIONAL", "33612345678", "+33612345678"),
        ("DE", "NATIONAL", "33612345678", "+4933612345678"),
        ("DE", "UNSAID", "+33612345678", "+33612345678"),
        ("DE", "INTERNATIONAL", "0033612345678", "+33612345678"),
        ("US", "UNSAID", "33612345678", "+33612345678"),
        ("US", "UNSAID", "(646) 234-5678", "+16462345678"),
        ("US", "NATIONAL", "6462345678", "+16462345678"),
        ("GB", "UNSAID", "07400900123", "+447400900123"),
        ("MX", "UNSAID", "+5215562000000", "+525562000000"),
        ("DE", "UNSAID", "\u202a+33 6 12 34 56 78\u202c", "+33612345678"),
    ],
)
def test_a_number_is_stored_as_e164(org, region, digits, cell, stored):
    type(org).objects.filter(pk=org.pk).update(region=region)
    TtlCache.clear_all()
    assert run(org, "mobile", cell, digits=digits) == []
    assert Contact.objects.get().mobile == stored


@pytest.mark.parametrize(
    ("region", "digits", "cell", "why"),
    [
        (
            "DE",
            "UNSAID",
            "33612345678",
            "may be +4933612345678 or +33612345678: write it with + and the country code, like "
            "+33612345678",
        ),
        ("GB", "INTERNATIONAL", "07400900123", "is not a phone number with its country code"),
        ("US", "UNSAID", "12345", "is not a phone number"),
    ],
)
def test_ambiguous_or_invalid_number_is_refused(org, region, digits, cell, why):
    type(org).objects.filter(pk=org.pk).update(region=region)
    TtlCache.clear_all()
    assert run(org, "mobile", cell, digits=digits) == [("mobile", why)]
    assert list(Contact.objects.all()) == []


@pytest.mark.parametrize(
    ("cell", "stored"),
    [
        ("zw1@sink.test\u200b", "zw1@sink.test"),
        ("zw1@si\u00adnk.test", "zw1@sink.test"),
        ("\ufeffZw1@Sink.test\u00a0", "Zw1@Sink.test"),
        ("\u202azw1@sink.test\u202c", "zw1@sink.test"),
        ("z\u2060w1@sink.test", "zw1@sink.test"),
        ("ada@Bücher.example", "ada@bücher.example"),
        ("ada@\uff42ücher.example", "ada@bücher.example"),
        ("a..b@docomo.ne.jp", "a..b@docomo.ne.jp"),
    ],
)
def test_an_email_is_stored_as_look_ups_find_it(org, cell, stored):
    for _ in range(2):
        assert run(org, "email", cell, by_email=True) == []
    assert list(Contact.objects.values_list("email", flat=True)) == [stored]
    assert [each.email for each in people.find(org.pk, cell, limit=5)] == [stored]


@pytest.mark.parametrize(
    "cell", ["\u212aelvin7@sink.test", "\u017fam@sink.test", "İ@sink.test", "a..b@sink.test"]
)
def test_an_email_of_another_mailbox_is_refused(org, cell):
    assert run(org, "email", cell) == [("email", "is not an email address")]


def test_stored_emails_lose_invisible_characters(org):
    foreign = "\u212aelvin@sink.test"
    for email in ("zw1@sink.test\u200b", "Ada@Sink.test", "ada@bücher.example", foreign):
        factories.contact(org, email=email)
    import_module("rme.crm.migrations.0009_visible_emails").clean_emails(apps, None)
    assert list(Contact.objects.order_by("id").values_list("email", flat=True)) == [
        "zw1@sink.test",
        "Ada@Sink.test",
        "ada@bücher.example",
        foreign,
    ]
