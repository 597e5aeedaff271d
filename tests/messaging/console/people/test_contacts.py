"""Contacts in the console: the list, adding, changing and deleting."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.console.people import contact_list
from rme.core.cache import TtlCache
from rme.crm.models import Account, Contact, Speaker
from rme.crm.models import Event as CrmEvent
from rme.tenants.models import Membership
from tests import audited, factories
from tests.crm import remote
from tests.crm.test_contacts import connect
from tests.fakes.odoo import OdooServer
from tests.messaging.console.conftest import url
from tests.plans import explained
from tests.tenants.admin.scene import NOW, page, person

pytestmark = pytest.mark.django_db
Role = Membership.Role
NEW = url("contact_new")
NO_PHONE = (
    "This is not a phone number of US: a number of another country begins with its code, like +41."
)


def errors_of(client, address=NEW, **fields):
    """Post a contact's form; return its errors, and check that it kept what was typed."""
    bound = client.post(address, fields).context["form"]
    assert {name: bound[name].value() for name in fields} == fields
    return {name: list(texts) for name, texts in bound.errors.items()}


@pytest.mark.promise("embedded-3")
def test_contact_is_added_with_its_phones_as_e164(root, org):
    account = Account.objects.create(organization=org, name="Café Müller GmbH")
    form = {
        "first_name": "Ada",
        "last_name": "Lovelace",
        "email": "ada@x.example",
        "mobile": "(212) 736-5000",
        "language": "gsw_CH",
        "zone": "Europe/Zurich",
        "account": "cafe muller",
    }
    answer = root.post(NEW, form)
    row = Contact.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, url("person", row.pk))
    assert (row.organization, str(row), row.email) == (org, "Ada Lovelace", "ada@x.example")
    assert (row.mobile, row.language, row.zone) == ("+12127365000", "gsw_CH", "Europe/Zurich")
    assert row.account == account
    assert audited.summaries() == [("root", "ADDED", "")]
    assert "account: – → Café Müller GmbH" in audited.lines(action="ADDED")


@pytest.mark.parametrize("typed", ["079 123 45 67", "555 0100", "+1 079 123 4567", "+999 12345"])
def test_invalid_field_is_an_error_there_and_keeps_what_was_typed(root, org, typed):
    fields = {"last_name": "", "email": "y", "phone": typed, "mobile": typed, "language": "xx"}
    assert errors_of(root, **fields) == {
        "last_name": ["This field is required."],
        "language": ["This language or country doesn't exist. Use a code like en_GB or de."],
        "email": ["This is not an email address."],
        "phone": [NO_PHONE],
        "mobile": [NO_PHONE],
    }
    assert not Contact.objects.exists()


@pytest.mark.parametrize("language", ["en_ZZ", "english", "EN"])
def test_language_that_does_not_exist_is_refused(root, org, language):
    assert [*errors_of(root, last_name="L", language=language)] == ["language"]


def test_account_of_another_organization_is_not_found(root, org):
    other = factories.organization("other")
    theirs = Account.objects.create(organization=other, name="Theirs")
    for text in ("Theirs", str(theirs.pk)):
        assert errors_of(root, last_name="L", account=text) == {
            "account": ["No account has this name. Add the account first."]
        }
    twins = [Account.objects.create(organization=org, name=name) for name in ("Acme", "Acme, Inc.")]
    assert errors_of(root, last_name="L", account="acme") == {
        "account": ["Several accounts have this name. Type the id of one."]
    }
    assert root.post(NEW, {"last_name": "L", "account": str(twins[1].pk)}).status_code == 302
    row = Contact.objects.get()
    form = {"last_name": "M", "account": "Acme, Inc."}  # the name that the form showed
    assert root.post(url("contact_edit", row.pk), form).status_code == 302
    row.refresh_from_db()
    assert (row.last_name, row.account) == ("M", twins[1])


def test_changes_and_deletion_are_audited_with_both_values(root, org):
    ada = factories.contact(org, language="zz", zone="US/Eastern")
    event = CrmEvent.objects.create(organization=org, name="Congress", starts_at=NOW)
    Speaker.objects.create(organization=org, event=event, contact=ada)
    edit = url("contact_edit", ada.pk)
    shown = root.get(edit).content.decode()
    for stored in ("zz", "US/Eastern"):  # both from an import
        assert f"<option selected>{stored}</option>" in shown
    form = {"last_name": "Byron", "email": ada.email, "mobile": ada.mobile, "language": ""}
    assert root.post(edit, form)["Location"] == url("person", ada.pk)
    delete = f"{url('contacts_delete')}?contact={ada.pk}"
    assert "Byron" in root.get(delete).content.decode()
    assert Contact.objects.exists()
    assert root.post(delete)["Location"] == url("contacts")
    assert not Contact.objects.exists()
    changed, deleted = audited.entries()
    assert changed.lines == [
        *("first_name: Ada → –", "last_name: Lovelace → Byron"),
        *("language: zz → –", "zone: US/Eastern → –"),
    ]
    assert "last_name: Byron → –" in deleted.lines
    assert [each.entry.action for each in (changed, deleted)] == ["CHANGED", "DELETED"]


def test_ticked_contacts_are_deleted_and_no_others(root, org):
    ada, bob, eve = factories.contacts(org, 3)
    theirs = factories.contact(factories.organization("other"))
    ticked = "&".join(f"contact={key}" for key in (ada.pk, bob.pk, theirs.pk, "x"))
    shown = root.get(f"{url('contacts_delete')}?{ticked}").content.decode()
    assert "Delete 2 contacts?" in shown
    root.post(f"{url('contacts_delete')}?{ticked}")
    assert set(Contact.objects.all()) == {eve, theirs}
    shown = root.post(url("contacts_delete"), follow=True).content.decode()
    assert "Tick the contacts to delete first." in shown


@pytest.mark.promise("embedded-4")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["Eve Nix", "Bob Smith", "Ruth Lane"]),
        ({"person": "ruth@x"}, ["Ruth Lane"]),
        ({"person": "RUTH@X.example"}, ["Ruth Lane"]),
        ({"person": "5550100"}, ["Ruth Lane"]),
        ({"person": "212 555 0100"}, ["Ruth Lane"]),
        ({"person": "Ruth"}, ["Ruth Lane"]),
        ({"person": "smi"}, ["Bob Smith"]),
        ({"person": "nobody"}, []),
        ({"person": "\0"}, ["Eve Nix", "Bob Smith", "Ruth Lane"]),
        ({"missing": "email"}, ["Eve Nix"]),
        ({"missing": "mobile"}, ["Bob Smith"]),
        ({"missing": "account"}, ["Bob Smith", "Ruth Lane"]),
        ({"missing": "mobile", "person": "Ruth"}, []),
    ],
)
def test_list_is_searched_and_filtered(root, org, query, expected):
    account = Account.objects.create(organization=org, name="Northwind")
    factories.contact(
        org, first_name="Ruth", last_name="Lane", email="ruth@x.example", mobile="+12125550100"
    )
    factories.contact(org, first_name="Bob", last_name="Smith", email="bob@x.example", mobile="")
    factories.contact(
        org, first_name="Eve", last_name="Nix", email="", mobile="+12125550109", account=account
    )
    factories.contact(factories.organization("other"), first_name="Ruth")
    lines = root.get(url("contacts"), query).context["lines"]
    assert [line.name for line in lines] == expected


def test_list_is_paged_with_as_many_statements_for_many(root, org):
    root.get(url("contacts"))  # the session keeps the organization
    counts, shown = [], []
    for count in (5, 55):
        factories.contacts(org, count)
        TtlCache.clear_all()
        with CaptureQueriesContext(connection) as captured:
            first = root.get(url("contacts"))
        counts.append(len(captured))
        shown.append(len(first.context["lines"]))
    assert shown == [5, 50]
    assert counts[0] == counts[1]
    second = root.get(url("contacts"), {"after": str(first.context["following"])})
    assert (len(second.context["lines"]), second.context["following"]) == (10, None)


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("nobody", "contact_by_words"),
        ("first2999", "contact_by_words"),
        ("zzz@x.ex", "contact_by_email_start"),
        ("0000", "contact_by_words"),
    ],
)
def test_search_reads_contacts_by_indexes(root, org, text, index):
    rows = (
        Contact(
            organization=org, first_name=f"First{number}", last_name=f"Last{number}",
            email=f"p{number}@x.example", mobile=f"+4179{number:07}",
        )
        for number in range(3000)
    )  # fmt: skip
    Contact.objects.bulk_create(rows)
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {Contact._meta.db_table}")
    with explained() as plans:
        root.get(url("contacts"), {"person": text})
    scans = [line for line in plans if f" on {Contact._meta.db_table}" in line]
    assert any(index in line for line in plans)
    assert [line for line in scans if "Seq Scan" in line] == []


def test_list_passes_no_contacts_of_others(root, org):
    for organization in (org, factories.organization("other")):
        factories.contacts(organization, 1000)
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {Contact._meta.db_table}")
    with explained() as plans:
        assert len(root.get(url("contacts")).context["lines"]) == 50
    assert [line for line in plans if "Scan" in line and " contact_by_organization " in line] != []
    assert [line for line in plans if "crm_contact_pkey" in line] == []


def test_search_is_paged_up_to_its_most_matches(root, org, monkeypatch):
    monkeypatch.setattr(contact_list, "MATCHES", 55)
    factories.contacts(org, 56)
    factories.contact(org)
    first = root.get(url("contacts"), {"person": "first"})
    second = root.get(
        url("contacts"), {"person": "first", "after": str(first.context["following"])}
    )
    assert [len(page.context["lines"]) for page in (first, second)] == [50, 5]
    cut = "The list shows 55 of the matching contacts."
    assert [cut in page.content.decode() for page in (first, second)] == [True, True]
    assert cut not in root.get(url("contacts"), {"person": "ada"}).content.decode()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("opened")
def test_contacts_of_a_remote_platform_are_searched(root, org):
    with OdooServer() as odoo:
        connect(org, "odoo", remote.odoo_settings(odoo), remote.ODOO_MAPPING)
        ada = odoo.add("res.partner", name="Ada", email="ada@x.example")
        empty = root.get(url("contacts"))
        assert (empty.context["lines"], empty.context["problem"]) == ([], "")
        assert "Add contact" not in empty.content.decode()
        found = root.get(url("contacts"), {"person": "ada@x.example"}).context["lines"]
        assert [(line.email, line.url) for line in found] == [("ada@x.example", url("person", ada))]
    shown = root.get(url("contacts"), {"person": "bob@x.example"}).content.decode()
    assert "The organization&#x27;s platform does not answer." in shown


def test_list_leads_to_imports_and_exports_of_the_organization(org):
    factories.organization("other")
    owner = person("owner", org, Role.OWNER)
    shown = owner.get(url("contacts")).content.decode()
    for name in ("imports", "export"):
        assert f'href="{page(Contact, name)}"' in shown
    export = owner.get(page(Contact, "export")).content.decode()
    assert f'<option value="{org.pk}" selected' in export


def test_only_people_who_may_see_and_change_contacts_do(org):
    ada = factories.contact(org)
    pages = [url("contacts"), NEW, url("contact_edit", ada.pk)]
    pages += [f"{url(name)}?contact={ada.pk}" for name in ("contacts_delete", "contacts_merge")]
    found = {}
    for role in Role.values:
        client = person(role, org, role)
        found[role] = [client.get(each).status_code for each in pages]
        if role != Role.OWNER:
            continue
        theirs = factories.contact(factories.organization("other"))
        assert client.get(url("contact_edit", theirs.pk)).status_code == 404
        assert client.get(url("contacts", org="other")).status_code == 404
    others = ("SUPPORT", "TEMPLATE_EDITOR", "APPROVER", "DEVELOPER")
    assert found == {
        "OWNER": [200, 200, 200, 200, 200],
        "OPERATOR": [200, 200, 200, 200, 200],
        "VIEWER": [200, 404, 404, 404, 404],
        **{role: [404] * 5 for role in others},
    }
