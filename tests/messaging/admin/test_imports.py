"""The pages for files of suppressions: importing, how far it has come, its report, exporting."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from messaging.consent import suppression_import, suppressions
from messaging.models import Suppression, SuppressionImport
from rme.tenants.models import Membership
from tests import audited, factories
from tests.admin.scene import page, person

pytestmark = pytest.mark.django_db
Role = Membership.Role

TEXT = "channel,address\nEMAIL,a@b.example\nEMAIL,nobody\nEMAIL,c@d.example\n"
NEW = reverse("admin:messaging_suppression_new_import")
IMPORTS = reverse("admin:messaging_suppression_imports")
EXPORT = reverse("admin:messaging_suppression_export")
REFRESH = b'<meta http-equiv="refresh"'


def upload(browser, org, text=TEXT):
    file = SimpleUploadedFile("list.csv", text.encode())
    return browser.post(NEW, {"organization": org.pk, "file": file})


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
    shown = root.get(run_page(run)).content
    assert REFRESH in shown
    assert b'aria-valuenow="0"' in shown
    assert suppression_import.work()
    shown = root.get(run_page(run)).content
    assert REFRESH not in shown
    assert b'aria-valuenow="100"' in shown
    assert run_page(run).encode() in root.get(IMPORTS).content
    report = root.get(run_page(run, "import_report"))
    assert report["Content-Type"] == "text/csv; charset=utf-8"
    assert report["Content-Disposition"] == f'attachment; filename="bad-rows-{run.pk}.csv"'
    assert b"".join(report.streaming_content) == (
        b"line,field,why\r\n3,address,not an address on the channel EMAIL\r\n"
    )
    assert list(
        Suppression.objects.order_by("address").values_list("organization_id", "address", "source")
    ) == [(org.pk, "a@b.example", "IMPORT"), (org.pk, "c@d.example", "IMPORT")]
    assert audited.told() == [("root", "IMPORTED", "3 rows started")]
    assert run.started_by == "root"


def test_a_large_file_goes_through_the_disk(root, org, redis):
    rows = "".join(f"EMAIL,person-{i:06}@a-rather-long-name.example\n" for i in range(60_000))
    assert len(rows) > 2_621_440  # what Django keeps in memory
    assert upload(root, org, f"channel,address\n{rows}").status_code == 302
    assert SuppressionImport.objects.get().rows == 60_000


def test_a_file_that_cannot_be_read_is_an_error_beside_the_field(root, org):
    answer = upload(root, org, "nonsense\n")
    assert answer.status_code == 200
    assert b"The first line may name channel" in answer.content
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
    assert audited.told() == [("root", "IMPORTED", "cancelled")]


def test_who_may_import_and_export(org):
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


def test_strangers_see_and_do_nothing(org):
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


def test_the_list_leaves_as_a_file_that_computes_nothing(root, org):
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
    assert audited.told(organization_id=org.pk) == [("root", "EXPORTED", "suppressions")]


def test_the_list_of_suppressions_leads_there(root, org):
    shown = root.get(page(Suppression, "changelist")).content.decode()
    assert IMPORTS in shown
    assert EXPORT in shown
    assert NEW in root.get(IMPORTS).content.decode()
