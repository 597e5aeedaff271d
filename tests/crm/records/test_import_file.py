"""Files of records: what is imported, what is refused, and what an export gives back."""

import io
from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from rme.core.csv_lines import Unreadable
from rme.crm.models import (
    Account,
    Case,
    Contact,
    Event,
    EventRegistration,
    Exhibitor,
    RecordImport,
    Speaker,
)
from rme.crm.records import export, import_file
from rme.crm.records.files import COLUMNS, names
from rme.tenants import imports
from tests import factories

pytestmark = pytest.mark.django_db
NOBODY = "00000000-0000-7000-8000-000000000000"


def run(org, model, text, part_rows=1000):
    """Import a file to its end; gives its counts and its bad rows."""
    file = io.BytesIO(text.encode())
    made = import_file.start(org.pk, model, "f.csv", file, started_by="grace", part_rows=part_rows)
    while import_file.import_next_part():
        pass
    made.refresh_from_db()
    counts = (made.state, made.rows, made.added, made.replaced, made.rejected)
    return counts, list(imports.rejected_rows(made))[1:]


@pytest.mark.promise("embedded-3")
def test_contacts_are_added_in_their_normal_form(org):
    account = Account.objects.create(organization=org, name="Acme")
    text = (
        "lastName;firstName;email;phone;mobile;language;zone;accountId;createdAt\n"
        f"Lovelace;Ada;Ada@Example.org;(212) 736-5000;'+41791234567;en_GB;Europe/London;"
        f"{account.pk};2020-01-01\n"
        "Süß;;;;;;;;\n"
    )
    assert run(org, Contact, text) == (("DONE", 2, 2, 0, 0), [])
    columns = ("last_name", "first_name", "email", "email_folded", "phone", "mobile", "language")
    rows = Contact.objects.order_by("last_name")
    assert list(rows.values_list(*columns, "zone", "account_id")) == [
        (
            "Lovelace", "Ada", "Ada@Example.org", "ada@example.org", "+12127365000",
            "+41791234567", "en_GB", "Europe/London", account.pk,
        ),
        ("Süß", "", "", "", "", "", "", "", None),
    ]  # fmt: skip


def test_row_with_an_id_changes_only_the_columns_of_the_file(org):
    ada = factories.contact(org, first_name="Ada", email="a@b.example")
    text = f"id,lastName,email\n{ada.pk},King,\n,New,new@b.example\n"
    assert run(org, Contact, text) == (("DONE", 2, 1, 1, 0), [])
    ada.refresh_from_db()
    assert (ada.first_name, ada.last_name, ada.email) == ("Ada", "King", "")
    assert Contact.objects.exclude(pk=ada.pk).get().email == "new@b.example"


def test_folded_name_follows_the_imported_name(org):
    account = Account.objects.create(organization=org, name="Acme")
    assert run(org, Account, f"id,name\n{account.pk},Zürich AG\n,Beta Ltd\n")[0][2:] == (1, 1, 0)
    assert sorted(Account.objects.values_list("name", "name_folded")) == [
        ("Beta Ltd", "beta"), ("Zürich AG", "zurich")
    ]  # fmt: skip


@pytest.mark.promise("embedded-8")
def test_bad_rows_are_reported_and_good_ones_imported(org):
    theirs = factories.contact(factories.organization("other"))
    text = (
        "id,lastName,email,phone,zone,accountId\n"
        ",Good,a@b.example,,,\n"
        ",,nobody,12,Mars,x\n"
        f"{theirs.pk},Stolen,,,,\n"
        f",L,,,,{NOBODY}\n"
        ',"L,,,,\n'
        ",L,,,,,,more\n"
        f",{'x' * 256},,,,\n"
    )
    assert run(org, Contact, text, part_rows=3) == (
        ("DONE", 7, 1, 0, 6),
        [
            ("3", "lastName", "is missing"),
            ("3", "email", "is not an email address"),
            ("3", "phone", "is not a phone number"),
            ("3", "zone", "is not an IANA time zone"),
            ("3", "accountId", "does not exist"),
            ("4", "id", "does not exist"),
            ("5", "accountId", "does not exist"),
            ("6", "row", "quotes that do not match"),
            ("7", "row", "more cells than the first line names"),
            ("8", "lastName", "is longer than 255 characters"),
        ],
    )
    theirs.refresh_from_db()
    assert theirs.last_name == "Lovelace"


def test_case_number_is_unique_within_the_organization(org):
    mine = Case.objects.create(organization=org, number="1", subject="S", issue="I")
    Case.objects.create(
        organization=factories.organization("other"), number="2", subject="S", issue="I"
    )
    text = f"id,number,subject,issue,status\n,1,S,I,\n,2,S,I,Closed\n,2,S,I,\n{mine.pk},1,T,I,Odd\n"
    assert run(org, Case, text) == (
        ("DONE", 4, 1, 0, 3),
        [
            ("2", "number", "belongs to another case"),
            ("4", "number", "belongs to another case"),
            ("5", "status", "is not one of New, Working, Closed"),
        ],
    )
    made = Case.objects.get(organization=org, number="2")
    assert (made.status, made.priority) == ("Closed", "Medium")


@pytest.mark.parametrize("moment", ["2026-13-01T00:00:00Z", "2026-01-01T00:00:00", "soon"])
def test_time_without_a_zone_is_rejected(org, moment):
    problem = "is not a time like 2026-01-31T12:00:00Z"
    assert run(org, Event, f"name,startsAt\nE,{moment}\n")[1] == [("2", "startsAt", problem)]


@pytest.mark.promise("embedded-8")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "The first line must name lastName, or id."),
        ("email\na@b.example\n", "The first line must name lastName, or id."),
        (
            "lastName,age\nL,3\n",
            f"The first line may name {', '.join(names(Contact))}; it names 'age'.",
        ),
        ("lastName,LASTNAME\n", "The first line names a column twice."),
        ("lastName\n\n", "The file has no rows below its header line."),
    ],
)
def test_unreadable_file_is_rejected(org, text, why):
    with pytest.raises(Unreadable) as refused:
        run(org, Contact, text)
    assert str(refused.value) == why
    assert not RecordImport.objects.exists()


@pytest.mark.promise("embedded-9")
def test_the_statements_of_a_part_do_not_grow_with_its_rows(org):
    account = Account.objects.create(organization=org, name="Acme")
    taken = []
    for count in (2, 60):
        rows = "".join(f",L{i},{account.pk}\n" for i in range(count))
        ada = factories.contact(org)
        text = f"id,lastName,accountId\n{rows}{ada.pk},M,\n"
        made = import_file.start(org.pk, Contact, "f", io.BytesIO(text.encode()), started_by="g")
        with CaptureQueriesContext(connection) as captured:
            import_file.import_next_part()
        made.refresh_from_db()
        assert (made.state, made.added, made.replaced) == ("DONE", count, 1)
        taken.append(len(captured))
    assert taken == [17, 16]  # the organization's settings are read once


def fill(org):
    start = datetime(2026, 3, 4, 9, 30, tzinfo=UTC)
    account = Account.objects.create(organization=org, name="=cmd()", website="https://x.example")
    ada = factories.contact(org, account=account, zone="Europe/London")
    Case.objects.create(organization=org, number="1", subject="S", issue="I", contact=ada)
    event = Event.objects.create(organization=org, name="E", starts_at=start)
    EventRegistration.objects.create(
        organization=org, event=event, name="A", email="a@b.example", attended=True
    )
    Speaker.objects.create(organization=org, event=event, contact=ada, session_start=start)
    Exhibitor.objects.create(organization=org, event=event, account=account, booth="'B")


@pytest.mark.promise("embedded-7")
@pytest.mark.parametrize("model", COLUMNS, ids=lambda model: model.__name__)
def test_exported_file_can_be_imported(org, model):
    fill(org)
    fill(factories.organization("other"))
    text = "".join(export.export(org.pk, model))
    assert text.splitlines()[0] == ",".join([*names(model), "createdAt"])
    before = list(model.objects.order_by("pk").values())
    assert len(text.splitlines()) == 2
    assert run(org, model, text) == (("DONE", 1, 0, 1, 0), [])
    assert list(model.objects.order_by("pk").values()) == before
    anew = text.splitlines()
    cells = anew[1].split(",", 1)[1]
    if model is not Case:
        assert run(org, model, f"{anew[0]}\n,{cells}\n") == (("DONE", 1, 1, 0, 0), [])


def test_exported_formulas_are_escaped(org):
    fill(org)
    assert ",'=cmd()," in "".join(export.export(org.pk, Account))
    assert ",'+12125550100," in "".join(export.export(org.pk, Contact))


@pytest.mark.parametrize("part_rows", [1, 2, 1000])
def test_a_quoted_cell_may_continue_in_the_next_line(org, part_rows):
    text = (
        "firstName,lastName,email,phone\r\n"
        + 'A,"Multi\r\nLine",multi@sink.test,\r\n'
        + '"","\r\n\r\nx ""y"", z",b@sink.test,\r\n'
        + "C,Plain,c@sink.test,\r\n"
    )
    assert run(org, Contact, text, part_rows) == (("DONE", 3, 3, 0, 0), [])
    rows = Contact.objects.order_by("email").values_list("first_name", "last_name", "email")
    assert list(rows) == [
        ("", 'x "y", z', "b@sink.test"),
        ("C", "Plain", "c@sink.test"),
        ("A", "Multi\nLine", "multi@sink.test"),
    ]


@pytest.mark.parametrize("part_rows", [1, 3, 1000])
def test_unmatched_quote_rejects_only_its_row(org, part_rows):
    text = (
        "lastName,email\n"
        '"one,1@sink.test\n'
        "two,2@sink.test\n"
        'three,"3@sink.test\n'
        '"four","4@sink.test"\n'
        '"five" x,5@sink.test\n'
        "six,6@sink.test\n"
        '"seven,7@sink.test\n'
        "eight,8@sink.test\n"
    )
    unmatched = "quotes that do not match"
    assert run(org, Contact, text, part_rows) == (
        ("DONE", 8, 4, 0, 4),
        [(line, "row", unmatched) for line in ("2", "4", "6", "8")],
    )
    names = Contact.objects.order_by("email").values_list("last_name", flat=True)
    assert list(names) == ["two", "four", "six", "eight"]


def test_bad_row_is_reported_with_its_first_line(org):
    text = 'lastName,email\n"a\nb\nc",x\n"d\ne",y\n'
    assert run(org, Contact, text) == (
        ("DONE", 2, 0, 0, 2),
        [("2", "email", "is not an email address"), ("5", "email", "is not an email address")],
    )
