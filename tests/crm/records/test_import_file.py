"""Files of records: what is imported, what is refused, and what an export gives back."""

import io
from datetime import UTC, datetime

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext

from rme.core.cache import TtlCache
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
from rme.tenants import imports, prepared_imports
from rme.tenants.models import Membership
from tests import audited, factories
from tests.tenants.admin.scene import page, person

pytestmark = pytest.mark.django_db
Role = Membership.Role
NOBODY = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def org(db):
    return factories.organization()


def run(org, model, text, part_rows=1000):
    """Import a file to its end; gives its counts and its bad rows."""
    file = io.BytesIO(text.encode())
    made = import_file.start(org.pk, model, "f.csv", file, started_by="grace", part_rows=part_rows)
    while import_file.import_next_part():
        pass
    made.refresh_from_db()
    counts = (made.state, made.rows, made.added, made.replaced, made.rejected)
    return counts, list(imports.rejected_rows(made))[1:]


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


def test_a_row_with_an_id_changes_the_columns_that_the_file_has(org):
    ada = factories.contact(org, first_name="Ada", email="a@b.example")
    text = f"id,lastName,email\n{ada.pk},King,\n,New,new@b.example\n"
    assert run(org, Contact, text) == (("DONE", 2, 1, 1, 0), [])
    ada.refresh_from_db()
    assert (ada.first_name, ada.last_name, ada.email) == ("Ada", "King", "")
    assert Contact.objects.exclude(pk=ada.pk).get().email == "new@b.example"


def test_an_accounts_folded_name_follows(org):
    account = Account.objects.create(organization=org, name="Acme")
    assert run(org, Account, f"id,name\n{account.pk},Zürich AG\n,Beta Ltd\n")[0][2:] == (1, 1, 0)
    assert sorted(Account.objects.values_list("name", "name_folded")) == [
        ("Beta Ltd", "beta"), ("Zürich AG", "zurich")
    ]  # fmt: skip


def test_bad_rows_are_reported_and_the_others_imported(org):
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


def test_a_cases_number_is_one_cases(org):
    mine = Case.objects.create(organization=org, number="1", subject="S", issue="I")
    Case.objects.create(
        organization=factories.organization("other"), number="2", subject="S", issue="I"
    )
    text = f"id,number,subject,issue,status\n,1,S,I,\n,2,S,I,Closed\n,2,S,I,\n{mine.pk},1,T,I,Odd\n"
    assert run(org, Case, text) == (
        ("DONE", 4, 1, 0, 3),
        [
            ("2", "number", "is another case's"),
            ("4", "number", "is another case's"),
            ("5", "status", "is not one of New, Working, Closed"),
        ],
    )
    made = Case.objects.get(organization=org, number="2")
    assert (made.status, made.priority) == ("Closed", "Medium")


@pytest.mark.parametrize("moment", ["2026-13-01T00:00:00Z", "2026-01-01T00:00:00", "soon"])
def test_a_time_without_a_zone_is_none(org, moment):
    problem = "is not a time like 2026-01-31T12:00:00Z"
    assert run(org, Event, f"name,startsAt\nE,{moment}\n")[1] == [("2", "startsAt", problem)]


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
def test_a_file_that_cannot_be_read_is_refused(org, text, why):
    with pytest.raises(Unreadable) as refused:
        run(org, Contact, text)
    assert str(refused.value) == why
    assert not RecordImport.objects.exists()


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


@pytest.mark.parametrize("model", COLUMNS, ids=lambda model: model.__name__)
def test_what_is_exported_can_be_imported(org, model):
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


def test_an_export_computes_nothing(org):
    fill(org)
    assert ",'=cmd()," in "".join(export.export(org.pk, Account))
    assert ",'+12125550100," in "".join(export.export(org.pk, Contact))


# --- the pages ----------------------------------------------------------------------------------
def test_a_file_is_imported_by_a_person(org, redis):
    editor = person("editor", org, Role.OPERATOR)
    shown = editor.get(page(Contact, "changelist")).content.decode()
    assert page(Contact, "imports") in shown
    assert page(Contact, "export") in shown
    file = SimpleUploadedFile("people.csv", b"lastName,email\nL,a@b.example\nM,nobody\n")
    answer = editor.post(page(Contact, "new_import"), {"organization": org.pk, "file": file})
    made = RecordImport.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, page(Contact, "import", made.pk))
    assert not import_file.import_next_part()  # nothing is imported before the columns are chosen
    columns = {"column_0": "lastName", "column_1": "email", "do": "import"}
    assert editor.post(answer["Location"], columns).status_code == 302
    assert b'aria-valuenow="0"' in editor.get(answer["Location"]).content
    assert import_file.import_next_part()
    assert b'aria-valuenow="100"' in editor.get(answer["Location"]).content
    report = editor.get(page(Contact, "import_report", made.pk))
    assert b"".join(report.streaming_content) == (
        b"line,field,why\r\n3,email,is not an email address\r\n"
    )
    assert b"people.csv" in editor.get(page(Contact, "imports")).content
    assert b"people.csv" not in editor.get(page(Account, "imports")).content
    assert audited.summaries() == [
        ("editor", "IMPORTED", "file of 2 rows uploaded"),
        ("editor", "IMPORTED", "2 rows started"),
    ]


PEOPLE = (
    "Family name;E-Mail;Notes\n"
    "Lovelace;ADA@simulator.rme.test;x\nHopper;h@x.example;y\n;z@x.example;\n"
)


def upload(editor, org, text=PEOPLE):
    file = SimpleUploadedFile("people.csv", text.encode())
    answer = editor.post(page(Contact, "new_import"), {"organization": org.pk, "file": file})
    return answer["Location"]


def finish():
    while import_file.import_next_part():
        pass
    run = RecordImport.objects.get()
    return run.state, run.added, run.replaced, run.rejected


CHOSEN = {"column_0": "lastName", "column_1": "email", "column_2": "", "by_email": "on"}


def test_a_file_is_tried_and_then_imported_by_its_emails(org, redis):
    ada = factories.contact(org)
    editor = person("editor", org, Role.OPERATOR)
    url = upload(editor, org)
    shown = editor.get(url).content.decode()
    for text in ("Family name", "Lovelace, Hopper", "E-Mail", "Leave out"):
        assert text in shown
    assert editor.post(url, CHOSEN | {"do": "try"}).status_code == 302
    assert finish() == ("DONE", 1, 1, 1)
    assert Contact.objects.get() == ada
    assert b"nothing of people.csv is stored yet" in editor.get(url).content
    report = editor.get(page(Contact, "import_report", RecordImport.objects.get().pk))
    assert b"4,lastName,is missing" in b"".join(report.streaming_content)
    editor.post(url, {"do": "import"})
    assert finish() == ("DONE", 1, 1, 1)
    rows = Contact.objects.order_by("pk").values_list("first_name", "last_name", "email", "mobile")
    assert list(rows) == [
        ("Ada", "Lovelace", "ADA@simulator.rme.test", "+12125550100"),
        ("", "Hopper", "h@x.example", ""),
    ]
    assert not RecordImport.objects.get().parts.exclude(content=None).exists()
    editor.post(url, {"do": "import"})  # once more
    assert finish() == ("DONE", 1, 1, 1)
    assert Contact.objects.count() == 2


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        ({"column_1": "lastName"}, "Two columns are lastName"),
        ({"column_1": ""}, "Choose the column with the email address"),
        ({"column_0": "", "by_email": ""}, "No column is lastName"),
        ({"column_0": "nonsense"}, "Select a valid choice"),
    ],
)
def test_columns_that_make_no_record_are_refused(org, redis, chosen, why):
    editor = person("editor", org, Role.OPERATOR)
    url = upload(editor, org)
    assert why in editor.post(url, CHOSEN | {"do": "try"} | chosen).content.decode()
    assert RecordImport.objects.get().state == "PREPARED"


def test_an_email_that_names_no_one_contact_is_rejected(org, redis):
    twin = {"email": "twin@x.example"}
    factories.contact(org, **twin)
    factories.contact(org, **twin)
    factories.contact(factories.organization("other"), email="new@x.example")
    editor = person("editor", org, Role.OPERATOR)
    text = "lastName,email\nA,twin@x.example\nB,new@x.example\nC,NEW@x.example\n"
    url = upload(editor, org, text)
    editor.post(
        url, {"column_0": "lastName", "column_1": "email", "by_email": "on", "do": "import"}
    )
    assert finish() == ("DONE", 1, 0, 2)
    assert list(imports.rejected_rows(RecordImport.objects.get()))[1:] == [
        ("2", "email", "is that of several contacts: name one by its id"),
        ("4", "email", "is that of line 3, too"),
    ]


def test_matching_asks_no_more_for_more_rows(org, redis):
    found = []
    for count in (3, 300):
        lines = "".join(f"L{i},p{i}x{count}@x.example\n" for i in range(count))
        made = import_file.prepare(
            org.pk,
            Contact,
            "f.csv",
            io.BytesIO(f"lastName,email\n{lines}".encode()),
            started_by="g",
        )
        prepared_imports.begin(made, ["lastName", "email"], by_email=True, dry_run=False)
        TtlCache.clear_all()
        with CaptureQueriesContext(connection) as captured:
            assert import_file.import_next_part()
        found.append(len(captured))
        import_file.import_next_part()
    assert found == [15, 15]


def test_a_file_that_nobody_imports_is_discarded(org, redis):
    editor = person("editor", org, Role.OPERATOR)
    url = upload(editor, org)
    assert prepared_imports.discard_abandoned(RecordImport) == 0
    RecordImport.objects.update(turn_at=datetime(2026, 1, 1, tzinfo=UTC))
    assert prepared_imports.discard_abandoned(RecordImport) == 1
    run = RecordImport.objects.get()
    assert (run.state, run.parts.count()) == ("CANCELLED", 0)
    assert editor.get(url).status_code == 200
    assert editor.post(url, {"do": "discard"}).status_code == 302


def test_strangers_do_not_choose_columns(org, redis):
    url = upload(person("editor", org, Role.OPERATOR), org)
    stranger = person("stranger", factories.organization("other"), Role.OWNER)
    assert stranger.get(url).status_code == 404
    assert stranger.post(url, CHOSEN | {"do": "import"}).status_code == 404
    assert person("viewer", org, Role.VIEWER).post(url, CHOSEN).status_code == 403
    assert RecordImport.objects.get().state == "PREPARED"


def test_records_leave_as_a_file(org):
    factories.contact(org)
    editor = person("editor", org, Role.OPERATOR)
    answer = editor.post(page(Contact, "export"), {"organization": org.pk})
    assert answer["Content-Disposition"] == f'attachment; filename="contacts-{org.pk}.csv"'
    assert b"ada@simulator.rme.test" in b"".join(answer.streaming_content)


def test_strangers_see_and_do_nothing(org):
    file = io.BytesIO(b"lastName\nL\n")
    made = import_file.start(org.pk, Contact, "people.csv", file, started_by="g")
    stranger = person("stranger", factories.organization("other"), Role.OWNER)
    assert b"people.csv" not in stranger.get(page(Contact, "imports")).content
    assert stranger.post(page(Contact, "import", made.pk)).status_code == 404
    assert stranger.get(page(Contact, "import_report", made.pk)).status_code == 404
    assert (
        b"valid choice" in stranger.post(page(Contact, "export"), {"organization": org.pk}).content
    )
    viewer = person("viewer", org, Role.VIEWER)
    assert viewer.get(page(Contact, "new_import")).status_code == 403
    assert viewer.post(page(Contact, "import", made.pk)).status_code == 403
    made.refresh_from_db()
    assert made.state == "RUNNING"
