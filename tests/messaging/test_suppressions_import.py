"""Importing files of suppressions part by part, and exporting the list."""

import io
import subprocess
import sys
import time
from datetime import UTC, datetime
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging import suppression, suppression_export, suppression_import, tasks
from messaging.models import Suppression, SuppressionImport, SuppressionImportPart
from tests import factories

pytestmark = pytest.mark.django_db

HEADER = "channel,address,contactId,reason,note,expiresAt\n"


def start(org, text, part_lines=suppression_import.PART_LINES):
    content = text.encode() if isinstance(text, str) else text
    return suppression_import.start(org.pk, "f.csv", io.BytesIO(content), "grace", part_lines)


def finish():
    """Do what workers do; gives how many parts were imported."""
    parts = 0
    while suppression_import.work():
        parts += 1
    return parts


def counts(run):
    run.refresh_from_db()
    return (run.state, run.rows, run.done, run.added, run.replaced, run.unchanged, run.rejected)


def bad(run):
    return list(suppression_import.report(run))[1:]


def stored(org):
    columns = ("channel", "address", "contact_id", "reason", "note", "expires_at", "source")
    return set(Suppression.objects.filter(organization=org).values_list(*columns))


def mails(numbers):
    return HEADER + "".join(f"EMAIL,p{i}@example.com,,MANUAL,,\n" for i in numbers)


# --- what is imported ---------------------------------------------------------------------------
def test_rows_become_entries_in_their_normal_form(org):
    run = start(
        org,
        HEADER + "email, Ada@Example.com ,,stop,,\n"
        'SMS,(212) 736-5000,,HARD_BOUNCE,"a ""bad"", number",2099-01-01T00:00:00Z\n'
        "\n"
        "PUSH,,c1,,,\n"
        "ALL,'+12127365001\n",
    )
    assert finish() == 1
    assert counts(run) == ("DONE", 4, 4, 4, 0, 0, 0)
    until = datetime(2099, 1, 1, tzinfo=UTC)
    assert stored(org) == {
        ("EMAIL", "ada@example.com", "", "STOP", "", None, "IMPORT"),
        ("SMS", "+12127365000", "", "HARD_BOUNCE", 'a "bad", number', until, "IMPORT"),
        ("PUSH", "", "c1", "MANUAL", "", None, "IMPORT"),
        ("ALL", "+12127365001", "", "MANUAL", "", None, "IMPORT"),
    }
    assert bad(run) == []


@pytest.mark.parametrize(
    "content",
    [
        "channel,address\nEMAIL,a@b.example\n",
        "channel,address\r\nEMAIL,a@b.example\r\n",
        "channel;address\nEMAIL;a@b.example",
        "Channel,ADDRESS,,\nEMAIL,a@b.example,,\n,,,\n",
        b"\xef\xbb\xbfchannel;address\r\nEMAIL;a@b.example\r\n",
        "createdAt,source,address,channel\n2020,API,a@b.example,EMAIL\n",
        '"channel","address"\n"EMAIL","a@b.example"\n',
    ],
)
def test_files_as_programs_write_them(org, content):
    run = start(org, content)
    finish()
    assert counts(run) == ("DONE", 1, 1, 1, 0, 0, 0)
    assert stored(org) == {("EMAIL", "a@b.example", "", "MANUAL", "", None, "IMPORT")}


def test_what_is_there_stays_or_takes_the_stronger_reason(org):
    fields = {"organization": org, "channel": "EMAIL", "source": "ADMIN"}
    Suppression.objects.create(address="a@b.example", reason="COMPLAINT", **fields)
    Suppression.objects.create(address="c@d.example", reason="MANUAL", **fields)
    run = start(
        org,
        "channel,address,reason\nEMAIL,a@b.example,STOP\nEMAIL,c@d.example,STOP\n"
        "EMAIL,e@f.example,STOP\nEMAIL,E@f.example,MANUAL\n",
    )
    finish()
    assert counts(run) == ("DONE", 4, 4, 1, 1, 2, 0)
    assert stored(org) == {
        ("EMAIL", "a@b.example", "", "COMPLAINT", "", None, "ADMIN"),
        ("EMAIL", "c@d.example", "", "STOP", "", None, "IMPORT"),
        ("EMAIL", "e@f.example", "", "STOP", "", None, "IMPORT"),
    }


def test_bad_rows_are_reported_and_fail_no_other(org):
    run = start(
        org,
        HEADER + "EMAIL,nobody,,,,\n"
        "FAX,a@b.example,,WHIM,,\n"
        "\n"
        "EMAIL,a@b.example,c1,,,\n"
        'EMAIL,"a@b.example,,,,\n'
        "EMAIL,a@b.example,,,,,more\n"
        "EMAIL,a@b.example,,,,2020-01-01T00:00:00Z\n"
        "EMAIL,a\x00@b.example,,,,\n"
        "EMAIL,a@b.example,,,no\x00te,\n"
        "EMAIL,good@b.example,,,,\n",
    )
    finish()
    assert counts(run) == ("DONE", 9, 9, 1, 0, 0, 8)
    reasons = "'HARD_BOUNCE', 'COMPLAINT', 'STOP', 'UNSUBSCRIBE', 'INVALID_ADDRESS' or 'MANUAL'"
    assert bad(run) == [
        ("2", "address", "not an address on the channel EMAIL"),
        ("3", "channel", "Input should be 'EMAIL', 'SMS', 'PUSH' or 'ALL'"),
        ("3", "reason", f"Input should be {reasons}"),
        ("5", "address", "give exactly one of address and contactId"),
        ("6", "row", "quotes that do not match"),
        ("7", "row", "more cells than the first line names"),
        ("8", "expiresAt", "must be ahead, by less than 100 years"),
        ("9", "address", "not an address on the channel EMAIL"),
        ("10", "note", "must not contain control characters"),
    ]
    assert {address for _, address, *_ in stored(org)} == {"good@b.example"}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "The first line must name channel, and one of address and contactId."),
        ("channel,reason\nEMAIL,STOP\n", "The first line must name channel, and one of address "
         "and contactId."),
        ("channel,address,address\n", "The first line names a column twice."),
        ("EMAIL,a@b.example\n", "The first line may name channel, address, contactId, reason, "
         "note, expiresAt; it names 'EMAIL'."),
        ('channel,"address\nEMAIL,a@b.example\n', "The first line has quotes that do not match."),
        (HEADER, "The file has no rows below its header line."),
        (HEADER + "\n,,,,\n", "The file has no rows below its header line."),
        (HEADER.encode() + b"EMAIL,a@b.example,,,caf\xe9,\n", "Line 2 is not UTF-8: save the file "
         "as such."),
        (HEADER.encode("utf-16"), "Line 1 is not UTF-8: save the file as such."),
        (HEADER + "x" * 20_000, "Line 2 is longer than 16,384 bytes."),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_refused_whole(org, content, why):
    with pytest.raises(suppression_import.Unreadable) as refused:
        start(org, content)
    assert str(refused.value) == why
    assert not SuppressionImport.objects.exists()


# --- part by part -------------------------------------------------------------------------------
def test_a_file_is_imported_part_by_part(org):
    run = start(org, mails(range(25)), part_lines=10)
    seen = []
    while suppression_import.work():
        seen.append(counts(run)[:4])
    assert seen == [("RUNNING", 25, 10, 10), ("RUNNING", 25, 20, 20), ("DONE", 25, 25, 25)]
    assert not SuppressionImportPart.objects.filter(content__isnull=False).exists()


@pytest.mark.parametrize("lines", [1, 50, 500])
def test_a_part_asks_as_often_whatever_it_holds(org, lines):
    start(org, mails(range(lines)))
    run = start(org, mails(range(lines)))
    suppression_import.work()
    with CaptureQueriesContext(connection) as captured:
        suppression_import.step(run.pk)
    assert (len(captured), counts(run)[0]) == (8, "DONE")  # five, the gate lock, and the savepoint


def test_files_take_turns(org):
    other = factories.organization("other")
    first = start(org, mails(range(40)), part_lines=10)
    second = start(other, mails(range(20)), part_lines=10)
    progress = []
    for _ in range(4):
        suppression_import.work()
        progress.append((counts(first)[2], counts(second)[2]))
    assert progress == [(10, 0), (10, 10), (20, 10), (20, 20)]


def test_a_part_imported_twice_gives_the_same(org):
    text = mails(range(15)) + "EMAIL,nobody,,,,\n"
    start(org, text)
    finish()
    before = list(Suppression.objects.order_by("pk").values())
    run = start(org, text)
    finish()
    assert counts(run) == ("DONE", 16, 16, 0, 0, 15, 1)
    assert list(Suppression.objects.order_by("pk").values()) == before


def test_an_import_that_is_cancelled_stops_where_it_is(org):
    run = start(org, "channel,address\nEMAIL,nobody\n" + "EMAIL,a@b.example\n" * 19, part_lines=10)
    suppression_import.work()
    assert not suppression_import.cancel("other", run.pk)
    assert suppression_import.cancel(org.pk, run.pk)
    assert not suppression_import.cancel(org.pk, run.pk)
    assert finish() == 0
    assert counts(run) == ("CANCELLED", 20, 10, 1, 0, 8, 1)
    assert bad(run) == [("2", "address", "not an address on the channel EMAIL")]


def test_the_task_imports_what_waits(org, redis):
    run = start(org, mails(range(25)), part_lines=10)
    tasks.import_suppressions()
    assert counts(run)[0] == "DONE"


KILLED = """
import sys
import django
from django.conf import settings
settings.DATABASES["default"]["NAME"] = sys.argv[1]
django.setup()
from messaging import suppression_import
while suppression_import.work():
    pass
"""


@pytest.mark.django_db(transaction=True)
def test_an_import_killed_half_way_is_resumed():
    org = factories.organization()
    text = mails(range(20_000)) + "EMAIL,nobody,,,,\n"
    run = start(org, text, part_lines=100)
    command = [sys.executable, "-c", KILLED, connection.settings_dict["NAME"]]
    worker = subprocess.Popen(command)
    until = time.monotonic() + 60
    while counts(run)[2] == 0 and worker.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    worker.kill()
    worker.wait()
    state, _, done, *_ = counts(run)
    assert state == "RUNNING"
    assert 0 < done < 20_000
    assert Suppression.objects.count() == done
    finish()
    assert counts(run) == ("DONE", 20_001, 20_001, 20_000, 0, 0, 1)
    assert Suppression.objects.count() == 20_000
    assert bad(run) == [("20002", "address", "not an address on the channel EMAIL")]


# --- the list as a file -------------------------------------------------------------------------
def entry(org, address, **fields):
    return suppression.Entry(org.pk, "EMAIL", address, "MANUAL", "API", **fields)


def test_no_cell_of_an_export_is_a_formula(org):
    phone = suppression.Entry(org.pk, "SMS", "+12127365000", "STOP", "API")
    notes = ["=1+1", "+1", "-1", "@SUM(A1)", "'=1", "two\nlines", 'a "b", c', "plain"]
    noted = [entry(org, f"n{i}@b.example", note=note) for i, note in enumerate(notes)]
    suppression.suppress([phone, entry(org, "=cmd|'/c'!a1@b.example"), *noted])
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
    push = suppression.Entry(org.pk, "PUSH", "", "STOP", "API", contact_id="=c1", expires_at=until)
    notes = ["=1+1", "'=1", "'quoted'", 'a "b"; c']
    noted = [entry(org, f"n{i}@b.example", note=note) for i, note in enumerate(notes)]
    gone = entry(org, "gone@b.example", expires_at=datetime(2020, 1, 1, tzinfo=UTC))
    suppression.suppress([push, gone, *noted])
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
    told, progress = StringIO(), StringIO()
    call_command(
        "import_suppressions", str(file), "--org", org.pk, "--report", str(report),
        stdout=told, stderr=progress,
    )  # fmt: skip
    assert told.getvalue() == (
        "in.csv: 4 of 4 rows. 3 added, 0 replaced, 0 there already, 1 bad.\n"
    )
    assert progress.getvalue() == "\r4 of 4 rows\n"
    assert report.read_text() == ("line,field,why\n5,address,not an address on the channel EMAIL\n")
    progress = StringIO()
    call_command("export_suppressions", str(out), "--org", org.pk, stderr=progress)
    assert progress.getvalue() == "\r3 rows\n"
    assert out.read_text() == "".join(suppression_export.export(org.pk)).replace("\r\n", "\n")


def test_the_commands_refuse_what_they_cannot_do(org, tmp_path):
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
