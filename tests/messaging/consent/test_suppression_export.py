"""Exporting suppressions, and the commands that import and export."""

from datetime import UTC, datetime
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from messaging.consent import suppression_export, suppressions
from tests import factories
from tests.messaging.consent.suppression_import_scene import counts, finish, mails, start, stored

pytestmark = pytest.mark.django_db


# --- the list as a file -------------------------------------------------------------------------
def entry(org, address, **fields):
    return suppressions.NewSuppression(org.pk, "EMAIL", address, "MANUAL", "API", **fields)


def test_exported_cells_are_never_formulas(org):
    phone = suppressions.NewSuppression(org.pk, "SMS", "+12127365000", "STOP", "API")
    notes = ["=1+1", "+1", "-1", "@SUM(A1)", "'=1", "two\nlines", 'a "b", c', "plain"]
    noted = [entry(org, f"n{i}@b.example", note=note) for i, note in enumerate(notes)]
    suppressions.suppress([phone, entry(org, "=cmd|'/c'!a1@b.example"), *noted])
    lines = "".join(suppression_export.export(org.pk)).split("\r\n")
    made = [cells.rpartition(",")[0] for cells in lines[1:-1]]
    assert lines[0] == "channel,address,contactId,reason,note,expiresAt,source,createdAt"
    assert sorted(made) == sorted([
        "SMS,'+12127365000,,STOP,,,API",
        "EMAIL,'=cmd|'/c'!a1@b.example,,MANUAL,,,API",
        "EMAIL,n0@b.example,,MANUAL,'=1+1,,API",
        "EMAIL,n1@b.example,,MANUAL,'+1,,API",
        "EMAIL,n2@b.example,,MANUAL,'-1,,API",
        "EMAIL,n3@b.example,,MANUAL,'@SUM(A1),,API",
        "EMAIL,n4@b.example,,MANUAL,''=1,,API",
        "EMAIL,n5@b.example,,MANUAL,two lines,,API",
        'EMAIL,n6@b.example,,MANUAL,"a ""b"", c",,API',
        "EMAIL,n7@b.example,,MANUAL,plain,,API",
    ])  # fmt: skip


def test_an_export_can_be_imported(org):
    other = factories.organization("other")
    until = datetime(2099, 1, 1, tzinfo=UTC)
    ada = str(factories.contact(other).pk)
    push = suppressions.NewSuppression(
        org.pk, "PUSH", "", "STOP", "API", contact_id=ada, expires_at=until
    )
    notes = ["=1+1", "'=1", "'quoted'", 'a "b"; c']
    noted = [entry(org, f"n{i}@b.example", note=note) for i, note in enumerate(notes)]
    gone = entry(org, "gone@b.example", expires_at=datetime(2020, 1, 1, tzinfo=UTC))
    suppressions.suppress([push, gone, *noted])
    text = "".join(suppression_export.export(org.pk))
    run = start(other, text)
    finish()
    assert counts(run) == ("DONE", 5, 5, 5, 0, 0, 0)
    sent = {values[:6] for values in stored(org) if values[1] != "gone@b.example"}
    assert {values[:6] for values in stored(other)} == sent
    assert "".join(suppression_export.export("nobody")).count("\r\n") == 1


# --- commands -----------------------------------------------------------------------------------
def test_the_commands_import_and_export(org, tmp_path):
    file, report, out = tmp_path / "in.csv", tmp_path / "bad.csv", tmp_path / "out.csv"
    file.write_text(mails(range(3)) + "EMAIL,nobody,,,,\n")
    output, progress = StringIO(), StringIO()
    call_command(
        "import_suppressions", str(file), "--org", org.pk, "--report", str(report),
        stdout=output, stderr=progress,
    )  # fmt: skip
    assert output.getvalue() == (
        "in.csv: 4 of 4 rows. 3 added, 0 replaced, 0 there already, 1 bad. "
        "Read as UTF-8, separated by commas.\n"
    )
    assert progress.getvalue() == "\r4 of 4 rows\n"
    assert report.read_text() == ("line,field,why\n5,address,is not an email address\n")
    progress = StringIO()
    call_command("export_suppressions", str(out), "--org", org.pk, stderr=progress)
    assert progress.getvalue() == "\r3 rows\n"
    assert out.read_text() == "".join(suppression_export.export(org.pk)).replace("\r\n", "\n")


def test_commands_reject_unknown_organization_and_malformed_file(org, tmp_path):
    file = tmp_path / "in.csv"
    file.write_text("nonsense\n")
    no_org = ("--org", "nobody")
    for command, arguments, why in (
        ("import_suppressions", (str(file), *no_org), "There is no organization nobody."),
        ("export_suppressions", no_org, "There is no organization nobody."),
        (
            "import_suppressions",
            (str(tmp_path / "none.csv"), "--org", org.pk),
            f"[Errno 2] No such file or directory: '{tmp_path / 'none.csv'}'",
        ),
        (
            "import_suppressions",
            (str(file), "--org", org.pk),
            "The first line may name channel, address, contactId, reason, note, expiresAt; "
            "it names 'nonsense'.",
        ),
    ):
        with pytest.raises(CommandError) as refused:
            call_command(command, *arguments, stdout=StringIO(), stderr=StringIO())
        assert str(refused.value) == why
