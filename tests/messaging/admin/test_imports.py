"""The pages for files of suppressions: importing, how far it has come, its report, exporting."""

from datetime import UTC, datetime

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from messaging.consent import suppression_import, suppressions, tasks
from messaging.models import Suppression, SuppressionImport
from rme.core.addresses import Digits
from rme.tenants import organizations
from rme.tenants.models import Membership
from tests import audited, factories
from tests.tenants.admin.scene import page, person

pytestmark = pytest.mark.django_db
Role = Membership.Role

TEXT = "channel,address\nEMAIL,a@b.example\nEMAIL,nobody\nEMAIL,c@d.example\n"
NEW = reverse("admin:messaging_suppression_new_import")
IMPORTS = reverse("admin:messaging_suppression_imports")
EXPORT = reverse("admin:messaging_suppression_export")
REFRESH = b'<meta http-equiv="refresh"'


def upload(browser, org, text=TEXT, encoding="utf-8"):
    file = SimpleUploadedFile("list.csv", text.encode(encoding))
    return browser.post(NEW, {"organization": org.pk, "file": file})


CHOSEN = {"column_0": "channel", "column_1": "address"}


def choose(browser, url, do, **columns):
    """Choose the columns of a file and what is done with it; the page is then left."""
    assert browser.post(url, {**CHOSEN, **columns, "do": do}).status_code == 302


def run_page(run, name="import"):
    return reverse(f"admin:messaging_suppression_{name}", args=[run.pk])


def started(org):
    file = SimpleUploadedFile("list.csv", TEXT.encode())
    return suppression_import.start(org.pk, "list.csv", file, "grace", part_lines=2)


def test_a_file_is_imported_with_progress_and_a_report(root, org, redis):
    assert b"list.csv" not in root.get(IMPORTS).content
    answer = upload(root, org)
    run = SuppressionImport.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, run_page(run))
    assert suppression_import.work()  # its columns are known, so it is checked at once
    assert not Suppression.objects.exists()
    assert root.post(run_page(run), {"do": "import"}).status_code == 302
    shown = root.get(run_page(run)).content
    assert REFRESH in shown
    assert b'max="100" value="0"' in shown
    assert suppression_import.work()
    shown = root.get(run_page(run)).content
    assert REFRESH not in shown
    assert b'max="100" value="100"' in shown
    assert run_page(run).encode() in root.get(IMPORTS).content
    report = root.get(run_page(run, "import_report"))
    assert report["Content-Type"] == "text/csv; charset=utf-8"
    assert report["Content-Disposition"] == f'attachment; filename="bad-rows-{run.pk}.csv"'
    assert b"".join(report.streaming_content) == (
        b"line,field,why\r\n3,address,is not an email address\r\n"
    )
    assert list(
        Suppression.objects.order_by("address").values_list("organization_id", "address", "source")
    ) == [(org.pk, "a@b.example", "IMPORT"), (org.pk, "c@d.example", "IMPORT")]
    assert audited.summaries() == [
        ("root", "IMPORTED", "file of 3 rows uploaded"),
        ("root", "IMPORTED", "dry run of 3 rows started"),
        ("root", "IMPORTED", "3 rows started"),
    ]
    assert run.started_by == "root"


FOREIGN = (
    "Medium;Wer;Remark\nEMAIL;new@b.example;x\nEMAIL;known@b.example;y\nEMAIL;nobody;z\n"
    "EMAIL;NEW@b.example;again\n"
)


def test_file_with_custom_columns_is_tried_and_then_imported(root, org, redis):
    known = suppressions.NewSuppression(org.pk, "EMAIL", "known@b.example", "STOP", "API")
    suppressions.suppress([known])
    url = upload(root, org, FOREIGN)["Location"]
    run = SuppressionImport.objects.get()
    shown = root.get(url).content.decode()
    for text in ("Medium", "Wer", "new@b.example, known@b.example, nobody", "Skip"):
        assert text in shown
    choose(root, url, "try", column_2="note")
    assert suppression_import.work()
    run.refresh_from_db()
    assert (run.state, run.added, run.replaced, run.rejected) == ("DONE", 1, 0, 1)
    assert Suppression.objects.get().address == "known@b.example"  # nothing was stored
    assert b"nothing of list.csv is imported yet" in root.get(url).content
    report = b"".join(root.get(run_page(run, "import_report")).streaming_content)
    assert b"4,address,is not an email address" in report
    assert root.post(url, {"do": "import"}).status_code == 302
    assert suppression_import.work()
    run.refresh_from_db()
    assert (run.state, run.added, run.rejected) == ("DONE", 1, 1)
    rows = Suppression.objects.order_by("address").values_list("address", "reason", "note")
    assert list(rows) == [("known@b.example", "STOP", ""), ("new@b.example", "MANUAL", "x")]
    assert [text for _, _, text in audited.summaries()] == [
        "file of 4 rows uploaded", "dry run of 4 rows started", "4 rows started",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "encoding", "read_as"),
    [
        (FOREIGN.replace("x", "é"), "cp1252", "Windows-1252, separated by semicolons"),
        (FOREIGN.replace(";", "\t"), "utf-16", "UTF-16, separated by tabs"),
        (FOREIGN.replace(";", ","), "ascii", "UTF-8, separated by commas"),
        ("sep=|\n" + FOREIGN.replace(";", "|"), "utf-8", "UTF-8, separated by “|”"),
    ],
)
def test_the_pages_of_a_file_say_how_it_was_read(root, org, redis, text, encoding, read_as):
    url = upload(root, org, text, encoding)["Location"]
    assert f"Read as {read_as}." in root.get(url).content.decode()
    choose(root, url, "try", column_2="note")
    assert f"Read as {read_as}." in root.get(url).content.decode()
    assert suppression_import.work()
    assert f"Read as {read_as}." in root.get(url).content.decode()


def test_import_of_an_earlier_release_shows_no_encoding(root, org):
    run = started(org)
    SuppressionImport.objects.update(encoding="")
    assert b"ead as" not in root.get(run_page(run)).content


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"column_0": ""}, "No column is the channel"),
        ({"column_1": "note"}, "No column is an address or a contact id"),
        ({"column_2": "address"}, "Two columns are address"),
        ({"column_2": "nonsense"}, "Select a valid choice"),
    ],
)
def test_invalid_choice_of_columns_is_rejected(root, org, columns, why):
    url = upload(root, org, FOREIGN)["Location"]
    refused = root.post(url, {**CHOSEN, **columns, "do": "import"})
    assert why in refused.content.decode()
    assert SuppressionImport.objects.get().state == "PREPARED"


ADDRESSES = "E-Mail;Grund\na@b.example;Hard bounce\nc@d.example;left\nnobody;stop\n"


def finish():
    while suppression_import.work():
        pass
    run = SuppressionImport.objects.get()
    return run.state, run.dry_run, run.added, run.replaced, run.rejected


def mend(browser, url, do, **mends):
    """Fill in the form of a check as its page shows it."""
    seen = browser.get(url).context["form"]["seen"].value()
    assert browser.post(url, {"seen": seen, "do": do, **mends}).status_code == 302


def test_list_of_addresses_is_checked_at_once_on_the_channel_they_fit(root, org, redis):
    url = upload(root, org, "E-Mail\na@b.example\nc@d.example\n")["Location"]
    assert finish() == ("DONE", True, 2, 0, 0)
    shown = root.get(url)
    assert shown.context["heads"] == [("E-Mail", "address")]
    assert "Channel in all rows: Email" in shown.content.decode()
    root.post(url, {"do": "import"})
    assert finish() == ("DONE", False, 2, 0, 0)
    assert set(Suppression.objects.values_list("channel", "address")) == {
        ("EMAIL", "a@b.example"), ("EMAIL", "c@d.example"),
    }  # fmt: skip


def test_bad_suppressions_are_mended_without_a_second_upload(root, org, redis):
    url = upload(root, org, ADDRESSES)["Location"]
    assert finish() == ("PREPARED", False, 0, 0, 0)  # "nobody" fits no channel
    chosen = {"column_0": "address", "column_1": "reason", "fixed_channel": "EMAIL"}
    choose(root, url, "try", **chosen)
    assert finish() == ("DONE", True, 1, 0, 2)
    shown = root.get(url)
    reasons = [(row.reason.column, row.reason.text) for row in shown.context["form"].rows()]
    assert reasons == [
        ("address", "is not an email address"),
        ("reason", "is not Hard bounce, Complaint, STOP, Unsubscribe, Invalid address or Manual"),
    ]
    refused = root.post(
        url, {"seen": shown.context["form"]["seen"].value(), "do": "again", "use_1_0": "gone"}
    )
    assert "use_1_0" in refused.context["form"].errors
    mend(root, url, "again", use_0_0="n@b.example", use_1_0="unsubscribe")
    assert finish() == ("DONE", True, 3, 0, 0)
    assert not Suppression.objects.exists()
    root.post(url, {"do": "import"})
    assert finish() == ("DONE", False, 3, 0, 0)
    assert set(Suppression.objects.values_list("address", "reason")) == {
        ("a@b.example", "HARD_BOUNCE"), ("c@d.example", "UNSUBSCRIBE"), ("n@b.example", "STOP"),
    }  # fmt: skip


def test_columns_of_suppressions_are_changed_without_a_second_upload(root, org, redis):
    url = upload(root, org, "email,old\na@b.example,x@y.example\n")["Location"]
    assert finish() == ("DONE", True, 1, 0, 0)
    root.post(url, {"do": "columns"})
    form = root.get(url).context["form"]
    assert (form["column_0"].value(), form["fixed_channel"].value()) == ("address", "EMAIL")
    choose(root, url, "import", column_0="", column_1="address", fixed_channel="ALL")
    assert finish() == ("DONE", False, 1, 0, 0)
    assert Suppression.objects.values_list("channel", "address").get() == ("ALL", "x@y.example")


@pytest.mark.parametrize(
    ("column", "cell", "problem"),
    [
        ("channel", "e-mail", ""),
        ("channel", "Fax", "is not Email, SMS, Push or All"),
        ("address", "a@b.example", ""),
        ("address", "+12127365000", ""),
        ("address", "nobody", "is neither an email address nor a phone number"),
        ("note", "any", ""),
        ("expiresAt", "2020-01-01T00:00:00Z", "must be ahead, by less than 100 years"),
        ("contactId", "c1", ""),
    ],
)
def test_a_cell_that_a_person_types_is_checked(org, column, cell, problem):
    organization = organizations.get(org.pk)
    assert suppression_import.cell_problem(column, cell, organization, Digits.UNSAID) == problem


def test_a_file_is_discarded_by_a_person_or_after_a_day(root, org, redis):
    url = upload(root, org, FOREIGN)["Location"]
    assert root.post(url, {"do": "discard"}).status_code == 302
    upload(root, org, FOREIGN)
    SuppressionImport.objects.filter(state="PREPARED").update(
        turn_at=datetime(2026, 1, 1, tzinfo=UTC)
    )
    tasks.import_suppressions()
    runs = SuppressionImport.objects.all()
    assert [(run.state, run.parts.count()) for run in runs] == [("CANCELLED", 0)] * 2


def test_a_large_file_goes_through_the_disk(root, org, redis):
    rows = "".join(f"EMAIL,person-{i:06}@a-rather-long-name.example\n" for i in range(60_000))
    assert len(rows) > 2_621_440  # what Django keeps in memory
    assert upload(root, org, f"channel,address\n{rows}").status_code == 302
    assert SuppressionImport.objects.get().rows == 60_000


def test_unreadable_file_is_an_error_at_the_field(root, org):
    answer = upload(root, org, "nonsense\n")
    assert answer.status_code == 200
    assert b"The file has no rows below its header line." in answer.content
    assert b"required" in root.post(NEW, {}).content
    assert not SuppressionImport.objects.exists()


def test_an_import_is_cancelled(root, org):
    run = started(org)
    suppression_import.work()
    assert b"Cancel<" in root.get(run_page(run)).content
    assert root.post(run_page(run)).status_code == 302
    run.refresh_from_db()
    assert (run.state, run.done) == ("CANCELLED", 2)
    assert not suppression_import.work()
    shown = root.get(run_page(run)).content
    assert REFRESH not in shown
    assert b"Cancel<" not in shown
    assert audited.summaries() == [("root", "IMPORTED", "cancelled")]


def test_importing_and_exporting_need_their_roles(org):
    run = started(org)
    found = {}
    for role in Role.values:
        browser = person(role, org, role)
        urls = (IMPORTS, run_page(run), run_page(run, "import_report"), NEW)
        found[role] = [browser.get(url).status_code for url in urls]
        found[role].append(browser.post(EXPORT, {"organization": org.pk}).status_code)
        if role not in (Role.OWNER, Role.OPERATOR):
            found[role] += [
                browser.post(run_page(run)).status_code,
                upload(browser, org).status_code,
            ]
    others = ("SUPPORT", "TEMPLATE_EDITOR", "APPROVER", "DEVELOPER")
    assert found == {
        "OWNER": [200, 200, 200, 200, 200],
        "OPERATOR": [200, 200, 200, 200, 200],
        "VIEWER": [200, 200, 200, 403, 200, 403, 403],
        **{role: [403, 404, 404, 403, 403, 404, 403] for role in others},
    }
    run.refresh_from_db()
    assert run.state == "RUNNING"


def test_strangers_have_no_access_to_imports(org):
    run = started(org)
    suppressions.suppress(
        [suppressions.NewSuppression(org.pk, "EMAIL", "a@b.example", "STOP", "API")]
    )
    stranger = person("stranger", factories.organization("other"), Role.OWNER)
    assert b"list.csv" not in stranger.get(IMPORTS).content
    assert stranger.get(run_page(run)).status_code == 404
    assert stranger.post(run_page(run)).status_code == 404
    assert stranger.get(run_page(run, "import_report")).status_code == 404
    assert b"valid choice" in upload(stranger, org).content
    refused = stranger.post(EXPORT, {"organization": org.pk})
    assert b"valid choice" in refused.content
    assert b"a@b.example" not in refused.content
    run.refresh_from_db()
    assert (run.state, SuppressionImport.objects.count()) == ("RUNNING", 1)


def test_list_is_exported_with_escaped_formulas(root, org):
    other = factories.organization("other")
    entries = [
        suppressions.NewSuppression(org.pk, "SMS", "+12127365000", "STOP", "API", note="=1+1"),
        suppressions.NewSuppression(other.pk, "EMAIL", "theirs@b.example", "STOP", "API"),
    ]
    suppressions.suppress(entries)
    assert b"<select" in root.get(EXPORT).content
    answer = root.post(EXPORT, {"organization": org.pk})
    assert answer["Content-Disposition"] == f'attachment; filename="suppressions-{org.pk}.csv"'
    header, row, end = b"".join(answer.streaming_content).split(b"\r\n")
    assert header == b"channel,address,contactId,reason,note,expiresAt,source,createdAt"
    assert row.startswith(b"SMS,'+12127365000,,STOP,'=1+1,,API,2")
    assert end == b""
    assert audited.summaries(organization_id=org.pk) == [("root", "EXPORTED", "suppressions")]


def test_suppression_list_links_to_imports_and_exports(root, org):
    shown = root.get(page(Suppression, "changelist"), follow=True).content.decode()
    assert IMPORTS in shown
    assert EXPORT in shown
    assert NEW in root.get(IMPORTS).content.decode()
