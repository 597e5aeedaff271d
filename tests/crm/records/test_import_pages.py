"""The pages by which people import and export files of records."""

import io
from datetime import UTC, datetime

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext

from rme.core.cache import TtlCache
from rme.crm.models import Account, Contact, RecordImport
from rme.crm.records import import_file
from rme.tenants import imports
from rme.tenants.models import Membership
from tests import audited, factories
from tests.crm.records.import_scene import finish, odd, upload
from tests.tenants.admin.scene import page, person

pytestmark = pytest.mark.django_db
Role = Membership.Role


@pytest.mark.promise("embedded-8")
def test_a_file_is_imported_by_a_person(org, redis):
    editor = person("editor", org, Role.OPERATOR)
    shown = editor.get(page(Contact, "changelist"), follow=True).content.decode()
    assert page(Contact, "imports") in shown
    assert page(Contact, "export") in shown
    file = SimpleUploadedFile("people.csv", b"lastName,email\nL,a@b.example\nM,nobody\n")
    answer = editor.post(page(Contact, "new_import"), {"organization": org.pk, "file": file})
    made = RecordImport.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, page(Contact, "import", made.pk))
    assert b"Being checked" in editor.get(answer["Location"]).content
    assert import_file.import_next_part()  # its columns are known, so it is checked at once
    assert not Contact.objects.exists()
    assert editor.post(answer["Location"], {"do": "import"}).status_code == 302
    assert b'max="100" value="0"' in editor.get(answer["Location"]).content
    assert import_file.import_next_part()
    assert b'max="100" value="100"' in editor.get(answer["Location"]).content
    report = editor.get(page(Contact, "import_report", made.pk))
    assert b"".join(report.streaming_content) == (
        b"line,field,why\r\n3,email,is not an email address\r\n"
    )
    assert b"people.csv" in editor.get(page(Contact, "imports")).content
    assert b"people.csv" not in editor.get(page(Account, "imports")).content
    assert audited.summaries() == [
        ("editor", "IMPORTED", "file of 2 rows uploaded"),
        ("editor", "IMPORTED", "dry run of 2 rows started"),
        ("editor", "IMPORTED", "2 rows started"),
    ]


CHOSEN = {"column_0": "lastName", "column_1": "email", "column_2": "", "by_email": "on"}


def test_a_file_is_tried_and_then_imported_by_its_emails(org, redis):
    ada = factories.contact(org)
    editor = person("editor", org, Role.OPERATOR)
    url = upload(editor, org)
    shown = editor.get(url).content.decode()
    for text in ("Stamm", "Lovelace, Hopper", "E-Mail", "Skip"):
        assert text in shown
    assert editor.post(url, CHOSEN | {"do": "try"}).status_code == 302
    assert finish() == ("DONE", 1, 1, 1)
    assert Contact.objects.get() == ada
    assert b"nothing of people.csv is imported yet" in editor.get(url).content
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
        ({"column_1": "lastName"}, "Two columns are last name"),
        ({"column_1": ""}, "Choose the column with the email address"),
        ({"column_0": "", "by_email": ""}, "No column is the last name"),
        ({"column_0": "nonsense"}, "Select a valid choice"),
    ],
)
def test_invalid_choice_of_columns_is_rejected(org, redis, chosen, why):
    editor = person("editor", org, Role.OPERATOR)
    url = upload(editor, org)
    assert why in editor.post(url, CHOSEN | {"do": "try"} | chosen).content.decode()
    assert RecordImport.objects.get().state == "PREPARED"


def test_ambiguous_email_is_rejected(org, redis):
    twin = {"email": "twin@x.example"}
    factories.contact(org, **twin)
    factories.contact(org, **twin)
    factories.contact(factories.organization("other"), email="new@x.example")
    editor = person("editor", org, Role.OPERATOR)
    text = "lastName,email\nA,twin@x.example\nB,new@x.example\nC,NEW@x.example\n"
    url = upload(editor, org, text)
    finish()
    editor.post(url, {"do": "columns"})
    editor.post(
        url, {"column_0": "lastName", "column_1": "email", "by_email": "on", "do": "import"}
    )
    assert finish() == ("DONE", 1, 0, 2)
    assert list(imports.rejected_rows(RecordImport.objects.get()))[1:] == [
        ("2", "email", "belongs to several contacts: name one by its id"),
        ("4", "email", "is the same as in line 3"),
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
        imports.begin(made, ["lastName", "email"], by_email=True, dry_run=False)
        TtlCache.clear_all()
        with CaptureQueriesContext(connection) as captured:
            assert import_file.import_next_part()
        found.append(len(captured))
        import_file.import_next_part()
    assert found == [15, 15]


def test_abandoned_file_is_discarded(org, redis):
    editor = person("editor", org, Role.OPERATOR)
    url = upload(editor, org)
    assert imports.discard_abandoned(RecordImport) == 0
    RecordImport.objects.update(turn_at=datetime(2026, 1, 1, tzinfo=UTC))
    assert imports.discard_abandoned(RecordImport) == 1
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


@pytest.mark.promise("embedded-7")
def test_records_are_exported_as_a_file(org):
    factories.contact(org)
    editor = person("editor", org, Role.OPERATOR)
    answer = editor.post(page(Contact, "export"), {"organization": org.pk})
    assert answer["Content-Disposition"] == f'attachment; filename="contacts-{org.pk}.csv"'
    assert b"ada@simulator.rme.test" in b"".join(answer.streaming_content)


def test_strangers_have_no_access_to_imports(org):
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


def test_the_sample_of_a_prepared_file_shows_whole_rows(org):
    text = 'sep=|\n"Last\nname"|Mail\n"Multi\nLine"|m@sink.test\n\nB|b@sink.test\n'
    made = import_file.prepare(
        org.pk, Contact, "f.csv", io.BytesIO(text.encode("utf-16")), started_by="grace"
    )
    assert (made.columns, made.delimiter, made.rows) == (["Last name", "Mail"], "|", 2)
    assert imports.sample(made) == [["Multi\nLine", "m@sink.test"], ["B", "b@sink.test"]]


def test_columns_are_guessed_and_the_file_is_checked_at_once(org, redis):
    editor = person("editor", org, Role.OPERATOR)
    shown = editor.get(odd(editor, org))
    assert shown.context["heads"] == [
        ("Nachname", "last name"), ("Vorname", "first name"), ("E-Mail", "email"),
        ("Handy", "mobile"), ("Sprache", "language"), ("Kundennr", "skipped"),
    ]  # fmt: skip
    assert shown.context["sample"][0] == [
        "Müller", "Ada", "ada@x.example", "079 399 29 30", "de-CH", "1",
    ]  # fmt: skip
    assert not Contact.objects.exists()


@pytest.mark.parametrize(
    ("encoding", "delimiter", "first", "read_as"),
    [
        ("cp1252", ";", "", "Windows-1252, separated by semicolons"),
        ("utf-16", "\t", "", "UTF-16, separated by tabs"),
        ("utf-8-sig", ";", "sep=;\r\n", "UTF-8, separated by semicolons"),
        ("utf-8", ",", "", "UTF-8, separated by commas"),
    ],
)
def test_files_as_spreadsheets_save_them_become_contacts(
    org, redis, encoding, delimiter, first, read_as
):
    rows = [
        ["Nachname", "Vorname", "E-Mail", "Handy", "Sprache"],
        ["Müller", '"Zoë\r\nMaria"', "zoe@x.example", "0033 6 12 34 56 78", "de-CH"],
        ["Roth", "Eve", "eve@x.example", "079 399 29 30", "DE"],
    ]
    text = first + "\r\n".join(map(delimiter.join, rows))
    org.region = "CH"
    org.save()
    TtlCache.clear_all()
    editor = person("editor", org, Role.OPERATOR)
    file = SimpleUploadedFile("kunden.csv", text.encode(encoding))
    url = editor.post(page(Contact, "new_import"), {"organization": org.pk, "file": file})[
        "Location"
    ]
    assert finish() == ("DONE", 2, 0, 0)
    assert f"Read as {read_as}." in editor.get(url).content.decode()
    editor.post(url, {"do": "import"})
    assert finish() == ("DONE", 2, 0, 0)
    names = ("last_name", "first_name", "email", "mobile", "language")
    assert set(Contact.objects.values_list(*names)) == {
        ("Müller", "Zoë\nMaria", "zoe@x.example", "+33612345678", "de_CH"),
        ("Roth", "Eve", "eve@x.example", "+41793992930", "de"),
    }


def test_columns_are_changed_without_a_second_upload(org, redis):
    editor = person("editor", org, Role.OPERATOR)
    url = odd(editor, org)
    assert editor.post(url, {"do": "columns"}).status_code == 302
    form = editor.get(url).context["form"]
    assert [each.label for each in form][:2] == ["Nachname", "Vorname"]
    assert form["column_4"].initial == "language"
    chosen = {name: field.initial or "" for name, field in form.fields.items()}
    editor.post(url, {**chosen, "column_3": "", "do": "try"})
    assert finish() == ("DONE", 2, 0, 2)


def test_value_is_fixed_for_a_column_that_the_file_lacks(org, redis):
    editor = person("editor", org, Role.OPERATOR)
    url = upload(editor, org, "Mail,lang\na@x.example,de\n")
    assert finish()[0] == "PREPARED"  # a contact needs a last name
    assert b"No column is the last name" in editor.post(url, {"column_0": "email"}).content
    chosen = {"column_0": "email", "column_1": "language", "fixed_lastName": "Unknown"}
    refused = editor.post(url, {**chosen, "fixed_language": "fr", "do": "try"})
    assert refused.context["form"].errors == {
        "fixed_language": ["The file has this column. Skip the column, or leave this empty."]
    }
    refused = editor.post(url, {**chosen, "fixed_accountId": "7", "do": "try"})
    assert refused.context["form"].errors == {"fixed_accountId": ["Does not exist."]}
    editor.post(url, {**chosen, "fixed_zone": "Europe/Zurich", "do": "try"})
    assert finish() == ("DONE", 1, 0, 0)
    assert "Time zone in all rows: Europe/Zurich" in editor.get(url).content.decode()
    editor.post(url, {"do": "import"})
    assert finish() == ("DONE", 1, 0, 0)
    names = ("last_name", "email", "language", "zone")
    assert Contact.objects.values_list(*names).get() == (
        "Unknown", "a@x.example", "de", "Europe/Zurich",
    )  # fmt: skip


def test_running_check_says_that_nothing_stays(org, redis):
    editor = person("editor", org, Role.OPERATOR)
    url = upload(editor, org, "lastName\nL\n")
    text = editor.get(url).content.decode()
    assert "This check imports nothing" in text
    assert "The file is discarded." in text
    assert "stay" not in text
    assert editor.post(url, {"cancel": "1"}).status_code == 302
    assert RecordImport.objects.get().parts.count() == 0


@pytest.mark.parametrize(
    ("first", "titles"),
    [("last\0Name,email", ["last Name", "email"]), ("sep=\0", ["sep="])],
)
def test_header_with_a_nul_is_read(org, redis, first, titles):
    editor = person("editor", org, Role.OPERATOR)
    assert editor.get(upload(editor, org, f"{first}\nL,a@b.example\n")).status_code == 200
    assert RecordImport.objects.get().titles == titles


def test_file_with_hundreds_of_columns_is_refused(org, redis):
    editor = person("editor", org, Role.OPERATOR)
    file = SimpleUploadedFile("wide.csv", f"lastName{',x' * 300}\nL\n".encode())
    shown = editor.post(page(Contact, "new_import"), {"organization": org.pk, "file": file})
    assert b"The first line names more than 300 columns." in shown.content
    assert not RecordImport.objects.exists()
